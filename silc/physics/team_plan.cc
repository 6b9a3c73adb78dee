// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/team_plan.h"

#include <algorithm>
#include <vector>

#include "silc/base/check.h"

namespace silc {
namespace {

// branches (their first links) to members, the largest first, each to the member with the least
std::vector<std::vector<int>> Assign(std::vector<int> branches,
                                     const std::vector<int>& size,
                                     int members) {
  std::stable_sort(
      branches.begin(), branches.end(), [&](int a, int b) { return size[a] > size[b]; });
  std::vector<std::vector<int>> share(members);
  std::vector<int> load(members, 0);
  for (const int branch : branches) {
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    share[least].push_back(branch);
    load[least] += size[branch];
  }
  return share;
}

int Longest(const std::vector<std::vector<int>>& share, const std::vector<int>& size) {
  int longest = 0;
  for (const std::vector<int>& branches : share) {
    int load = 0;
    for (const int branch : branches) load += size[branch];
    longest = std::max(longest, load);
  }
  return longest;
}

}  // namespace

TeamPlan PlanTeam(const StepModel<float>& model, int members) {
  SILC_CHECK(members >= 1 && members <= kMaxTeam);
  const int n = model.num_links;
  std::vector<int> size(n, 1), branches;
  for (int b = n - 1; b >= 0; --b) {
    if (model.link[b].parent >= 0) {
      size[model.link[b].parent] += size[b];
    } else {
      branches.push_back(b);
    }
  }

  // open the largest branch, its first link joins the trunk, as long as there is something to open
  std::vector<int> trunk, best_trunk;
  std::vector<std::vector<int>> best = Assign(branches, size, members);
  int best_length = Longest(best, size);
  while (members > 1) {
    const auto largest = std::max_element(
        branches.begin(), branches.end(), [&](int a, int b) { return size[a] < size[b]; });
    const int opened = *largest;
    if (size[opened] == 1) break;
    branches.erase(largest);
    trunk.push_back(opened);
    for (int c = model.link[opened].first_child; c >= 0; c = model.link[c].next_sibling) {
      branches.push_back(c);
    }
    const std::vector<std::vector<int>> share = Assign(branches, size, members);
    const int length = static_cast<int>(trunk.size()) + Longest(share, size);
    if (length < best_length) {
      best_length = length;
      best_trunk = trunk;
      best = share;
    }
  }

  // a trunk link that carries one branch only is better at that branch's head, and the passes rely
  // on an only child following its parent
  for (bool moved = true; moved;) {
    moved = false;
    for (std::vector<int>& share : best) {
      for (int& branch : share) {
        const int parent = model.link[branch].parent;
        if (parent < 0 || model.link[parent].num_children > 1) continue;
        const auto at = std::find(best_trunk.begin(), best_trunk.end(), parent);
        if (at == best_trunk.end()) continue;
        best_trunk.erase(at);
        branch = parent;
        moved = true;
      }
    }
  }

  TeamPlan plan = {};
  std::fill_n(plan.owner, kMaxLinks, -1);
  std::fill_n(plan.port, kMaxLinks, -1);
  std::fill_n(plan.hub, kMaxLinks, -1);
  std::sort(best_trunk.begin(), best_trunk.end());
  plan.num_trunk = static_cast<int>(best_trunk.size());
  int next = 0;
  for (const int b : best_trunk) {
    plan.link[next++] = static_cast<signed char>(b);
    plan.owner[b] = 0;
  }
  for (std::vector<int>& share : best) {
    if (share.empty() && plan.size > 0) continue;
    plan.begin[plan.size] = plan.size == 0 ? 0 : next;
    std::sort(share.begin(), share.end());
    for (const int branch : share) {
      for (int b = branch; b < branch + size[branch]; ++b) {
        plan.link[next++] = static_cast<signed char>(b);
        plan.owner[b] = static_cast<signed char>(plan.size);
      }
    }
    plan.begin[++plan.size] = next;
  }
  SILC_CHECK(next == n);
  for (int member = 0; member < plan.size; ++member) {
    for (int i = plan.begin[member]; i < plan.begin[member + 1]; ++i) {
      plan.slot[plan.link[i]] = static_cast<signed char>(i - plan.begin[member]);
    }
  }
  for (int b = 0; b < n; ++b) {
    const int parent = model.link[b].parent;
    if (parent < 0 || plan.owner[parent] == plan.owner[b]) continue;
    plan.port[b] = static_cast<signed char>(plan.num_ports++);
    if (plan.hub[parent] < 0) plan.hub[parent] = static_cast<signed char>(plan.num_hubs++);
  }
  plan.hubs = plan.num_ports * kPortSize;
  plan.sums = plan.hubs + plan.num_hubs * kHubSize;
  plan.memory = plan.sums + kSumSlots * plan.size * kSumSize;
  return plan;
}

TeamLoad LoadOf(const StepModel<float>& model, const TeamPlan& plan) {
  TeamLoad most = {0, 0};
  for (int member = 0; member < plan.size; ++member) {
    int contacts = 0;
    for (int i = plan.begin[member]; i < plan.begin[member + 1]; ++i) {
      contacts += model.link[plan.link[i]].num_contacts;
    }
    most.links = std::max(most.links, plan.begin[member + 1] - plan.begin[member]);
    most.contacts = std::max(most.contacts, contacts);
  }
  return most;
}

}  // namespace silc

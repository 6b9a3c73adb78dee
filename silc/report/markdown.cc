// SPDX-License-Identifier: Apache-2.0
#include "silc/report/markdown.h"

#include <cctype>
#include <map>
#include <sstream>

#include "silc/report/html.h"

namespace silc {
namespace {

const std::map<std::string, std::string, std::less<>>& TexWords() {
  static const std::map<std::string, std::string, std::less<>> words = {
      {"alpha", "α"},    {"delta", "δ"},    {"lambda", "λ"},   {"sigma", "σ"},    {"tau", "τ"},
      {"omega", "ω"},    {"pi", "π"},       {"top", "ᵀ"},      {"le", " ≤ "},     {"ge", " ≥ "},
      {"preceq", " ⪯ "}, {"succeq", " ⪰ "}, {"propto", " ∝ "}, {"approx", " ≈ "}, {"Vert", "‖"},
      {"sup", "sup "},   {"min", "min "},   {"max", "max "},   {"times", " × "},  {"cdot", "·"},
      {"infty", "∞"},    {"pm", "±"},       {"sqrt", "√"}};
  return words;
}

// Reads one argument of a TeX command: a group, a command or a single character (with all its
// bytes).
std::string_view Argument(std::string_view tex, std::size_t* at) {
  while (*at < tex.size() && tex[*at] == ' ') ++*at;
  if (*at >= tex.size()) return {};
  const std::size_t begin = *at;
  if (tex[begin] == '{') {
    int depth = 0;
    std::size_t end = begin;
    do {
      depth += tex[end] == '{' ? 1 : tex[end] == '}' ? -1 : 0;
      ++end;
    } while (end < tex.size() && depth > 0);
    *at = end;
    return tex.substr(begin + 1, end - begin - 2);
  }
  std::size_t end = begin + 1;
  if (tex[begin] == '\\') {
    while (end < tex.size() && (std::isalpha(static_cast<unsigned char>(tex[end])) != 0)) ++end;
  } else {
    while (end < tex.size() && (static_cast<unsigned char>(tex[end]) & 0xC0) == 0x80) ++end;
  }
  *at = end;
  return tex.substr(begin, end - begin);
}

std::string Inline(std::string_view text) {
  std::string out, plain;
  const auto flush = [&] {
    out += EscapeHtml(plain);
    plain.clear();
  };
  // the text up to the next `mark` from `from` on; npos where there is none
  const auto until = [&](const std::string& mark, std::size_t from) {
    return text.find(mark, from);
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto wrap = [&](const std::string& mark, const auto& render) {
      const std::size_t begin = i + mark.size(), end = until(mark, begin);
      if (text.substr(i, mark.size()) != mark || end == text.npos || end == begin) return false;
      flush();
      out += render(text.substr(begin, end - begin));
      i = end + mark.size();
      return true;
    };
    if (text[i] == '\\' && i + 1 < text.size() && std::ispunct((unsigned char)text[i + 1]) != 0) {
      plain += text[i + 1];
      i += 2;
      continue;
    }
    if (wrap("`", [](std::string_view t) { return Code(t); })) continue;
    if (wrap("$", [](std::string_view t) { return "<i>" + TexToHtml(t) + "</i>"; })) continue;
    if (wrap("**", [](std::string_view t) { return "<b>" + Inline(t) + "</b>"; })) continue;
    if (wrap("*", [](std::string_view t) { return "<i>" + Inline(t) + "</i>"; })) continue;
    if (text[i] == '[') {
      const auto middle = until("](", i), end = middle == text.npos ? middle : until(")", middle);
      if (end != text.npos) {
        flush();
        out += Inline(text.substr(i + 1, middle - i - 1));
        i = end + 1;
        continue;
      }
    }
    plain += text[i++];
  }
  flush();
  return out;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> Cells(std::string_view line) {
  std::vector<std::string> cells;
  line = Trim(line);
  line.remove_prefix(1);  // the first |
  bool code = false;
  std::string cell;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') code = !code;
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cell += '|';
      ++i;
    } else if (line[i] == '|' && !code) {
      cells.emplace_back(Trim(cell));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

bool IsRule(std::string_view line) {  // |---|--:|
  return line.find_first_not_of("|-: ") == line.npos;
}

}  // namespace

std::string TexToHtml(std::string_view tex) {
  std::string out;
  for (std::size_t i = 0; i < tex.size();) {
    const char c = tex[i];
    if (c == '^' || c == '_') {
      ++i;
      const std::string inner = TexToHtml(Argument(tex, &i));
      if (inner == "ᵀ") {
        out += inner;  // raised as it is
      } else {
        out += c == '^' ? "<sup>" + inner + "</sup>" : "<sub>" + inner + "</sub>";
      }
    } else if (c == '\\') {
      std::size_t end = i + 1;
      while (end < tex.size() && (std::isalpha((unsigned char)tex[end]) != 0)) ++end;
      if (end == i + 1) {  // \{ and the like
        if (end < tex.size() && tex[end] != ',') out += EscapeHtml(tex.substr(end, 1));
        i = end + 1;
        continue;
      }
      const std::string word(tex.substr(i + 1, end - i - 1));
      i = end;
      if (word == "dot") {
        out += TexToHtml(Argument(tex, &i)) + "\u0307";
      } else if (word == "operatorname" || word == "mathrm") {
        out += TexToHtml(Argument(tex, &i)) + (word == "operatorname" ? " " : "");
      } else {
        const auto known = TexWords().find(word);
        out += known != TexWords().end() ? known->second : EscapeHtml(word);
        if (i < tex.size() && tex[i] == ' ') ++i;  // it ended the command
      }
    } else if (c == '{' || c == '}') {
      ++i;
    } else if (c == '<' || c == '>' || c == '=') {  // relations get room, as TeX gives them
      out += " " + EscapeHtml(tex.substr(i, 1)) + " ";
      ++i;
    } else if (c == '-') {
      out += "−";
      ++i;
    } else {
      std::size_t end = i + 1;
      while (end < tex.size() && (static_cast<unsigned char>(tex[end]) & 0xC0) == 0x80) ++end;
      out += EscapeHtml(tex.substr(i, end - i));
      i = end;
    }
  }
  return out;
}

std::string MarkdownToHtml(std::string_view markdown) {
  std::istringstream lines{std::string(markdown)};
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  std::string out;
  const auto begins = [&](std::size_t i, const char* with) { return all[i].starts_with(with); };
  const auto plain = [&](std::size_t i) {
    return !Trim(all[i]).empty() && !begins(i, "#") && !begins(i, "|") && !begins(i, "- ");
  };
  for (std::size_t i = 0; i < all.size();) {
    if (Trim(all[i]).empty()) {
      ++i;
    } else if (begins(i, "#")) {
      const std::size_t level = all[i].find_first_not_of('#');
      // the page's own headings are h1 and h2
      const std::string tag = "h" + std::to_string(std::min<std::size_t>(level + 1, 5));
      out += "<" + tag + ">" + Inline(Trim(std::string_view(all[i]).substr(level))) + "</" + tag +
             ">\n";
      ++i;
    } else if (begins(i, "|")) {
      std::vector<HtmlTable::Column> columns;
      for (const std::string& cell : Cells(all[i])) columns.push_back({Inline(cell)});
      HtmlTable table(columns);
      for (++i; i < all.size() && begins(i, "|"); ++i) {
        if (IsRule(all[i])) continue;
        std::vector<std::string> cells;
        for (const std::string& cell : Cells(all[i])) cells.push_back(Inline(cell));
        cells.resize(columns.size());
        table.Row(std::move(cells));
      }
      out += table.Render();
    } else if (begins(i, "- ")) {
      out += "<ul>\n";
      while (i < all.size() && begins(i, "- ")) {
        std::string item = all[i++].substr(2);
        while (i < all.size() && plain(i)) item += " " + std::string(Trim(all[i++]));
        out += "<li>" + Inline(item) + "</li>\n";
      }
      out += "</ul>\n";
    } else {
      std::string paragraph(Trim(all[i++]));
      while (i < all.size() && plain(i)) paragraph += " " + std::string(Trim(all[i++]));
      out += "<p>" + Inline(paragraph) + "</p>\n";
    }
  }
  return out;
}

std::vector<std::string> CodeSpans(std::string_view markdown) {
  std::vector<std::string> spans;
  for (std::size_t begin = markdown.find('`'); begin != markdown.npos;) {
    const std::size_t end = markdown.find('`', begin + 1);
    if (end == markdown.npos) break;
    spans.emplace_back(markdown.substr(begin + 1, end - begin - 1));
    begin = markdown.find('`', end + 1);
  }
  return spans;
}

}  // namespace silc

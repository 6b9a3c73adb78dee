// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "silc/base/error.h"
#include "silc/base/utf8.h"
#include "silc/cli/number.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"

namespace {

// What was printed has to have arrived, on a full disk as on a closed pipe.
void NeedWritten() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw silc::RunError(std::string("standard output: cannot be written: ") + std::strerror(errno));
}

std::string Shortened(const std::filesystem::path& path) {
  constexpr std::size_t kShown = 200;
  const std::string name = path.string();
  return silc::Printable(name.substr(0, kShown)) + (name.size() > kShown ? "…" : "");
}

// 0 done, 2 asked wrongly; what failed is thrown
int Run(int argc, char** argv) {
  CLI::App app("silc: humanoid policies whose stiffness is specified, observed and bounded",
               "silc");
  app.set_version_flag("--version", "silc " SILC_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(38);
  silc::AddObserve(&app);
  silc::AddCertify(&app);
  silc::AddBench(&app);
  silc::AddSim(&app);
  silc::AddDeploy(&app);
  silc::AddEval(&app);
  silc::AddReport(&app);
  silc::AddExport(&app);
  silc::AddGains(&app);
  silc::AddMotion(&app);
#ifdef SILC_HAS_VIEW
  silc::AddView(&app);
#endif
#ifdef SILC_HAS_TRAINER
  silc::AddTrainerVerbs(&app, argv);
#endif

  silc::RefuseEmptyValues(&app);
  try {
    app.parse(argc, argv);
    NeedWritten();
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      NeedWritten();
      return 0;
    }
    fmt::print(stderr, "silc: {}\n", silc::Printable(error.what()));
    const auto chosen = app.get_subcommands();
    fmt::print(stderr,
               "  silc {}--help lists what it takes.\n",
               chosen.empty() ? "" : chosen.front()->get_name() + " ");
    return 2;
  } catch (const silc::ConfigError& error) {
    fmt::print(stderr, "silc: {}\n", silc::Printable(error.what()));
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {
    if (error.code() != std::errc::filename_too_long) throw;
    fmt::print(stderr, "silc: {}: a longer name than files have\n", Shortened(error.path1()));
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "silc: the memory is not enough for this; ask for less at once\n");
    return 1;
  } catch (const std::exception& error) {
    // fmt's print throws where this is closed
    std::fprintf(stderr, "silc: %s\n", silc::Printable(error.what()).c_str());
    return 1;
  }
}

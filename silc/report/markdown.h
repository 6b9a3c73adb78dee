// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// The part of Markdown our pages in docs/ use, as HTML: headings, paragraphs, lists, tables,
/// `code`, **bold**, *italic*, and $…$ with the TeX our formulas need. Links keep their words and
/// lose their target: the page is read far from the files.
std::string MarkdownToHtml(std::string_view markdown);

/// A formula as text with <sup> and <sub>: "\lambda_{min}" is λ<sub>min</sub>. An unknown command
/// is shown by its name.
std::string TexToHtml(std::string_view tex);

/// What stands in `backquotes`, in order.
std::vector<std::string> CodeSpans(std::string_view markdown);

}  // namespace silc

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// The page's style sheet: light or dark as the reader's system is, one column on a phone.
inline constexpr char kPageStyle[] = R"css(
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#ffffff;--band:#f4f6f8;--line:#d8dee4;
--accent:#0072b2;--yes:#0a7a55;--yes-b:#dcf3ea;--part:#8a5a00;--part-b:#fbeecd;--no:#b3370b;--no-b:#fde3d8;--open-b:#eceff2}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa3ad;--paper:#0d1117;--band:#161b22;--line:#2b323b;
--accent:#6cbcf0;--yes:#4fd9a9;--yes-b:#0f3327;--part:#f0c15c;--part-b:#3a2d0c;--no:#ff9a6b;--no-b:#431d0e;--open-b:#21262d}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main,header,footer{max-width:66rem;margin:0 auto;padding:0 1.1rem}
header{padding-top:2.2rem}
h1{font-size:clamp(1.6rem,4.5vw,2.5rem);line-height:1.15;margin:0 0 .4rem;letter-spacing:-.015em;text-wrap:balance}
h2{font-size:1.45rem;line-height:1.25;margin:3.2rem 0 .6rem;padding-top:1.1rem;border-top:1px solid var(--line)}
h3{font-size:1.08rem;margin:1.9rem 0 .4rem}
p,ul,ol{margin:.6rem 0;max-width:46rem}
li{margin:.25rem 0}
.lead{font-size:1.12rem;color:var(--soft);max-width:46rem}
a{color:var(--accent)}
code{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--band);padding:.08em .3em;border-radius:4px;overflow-wrap:anywhere}
pre{background:var(--band);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;overflow-x:auto;margin:.6rem 0}
pre code{background:none;padding:0;white-space:pre;overflow-wrap:normal}
nav ul{display:flex;flex-wrap:wrap;gap:.35rem .5rem;list-style:none;padding:0;max-width:none}
nav a{display:inline-block;padding:.22rem .7rem;border:1px solid var(--line);border-radius:999px;text-decoration:none;font-size:.9rem}
nav a:hover{background:var(--band)}
.scroll{overflow-x:auto;margin:.8rem 0 1.1rem;border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:.93rem}
caption{text-align:left;padding:.6rem .8rem;font-weight:600;caption-side:top}
th,td{padding:.45rem .8rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.84rem;vertical-align:bottom;background:var(--band)}
caption+thead th{border-top:1px solid var(--line)}
tbody th{font-weight:500;position:sticky;left:0;background:var(--paper);min-width:8.5rem}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead .num{white-space:normal;min-width:5.2rem}
.group th{background:var(--band);font-weight:600;font-size:.86rem;color:var(--soft)}
.missing td{color:var(--soft)}
.ci{color:var(--soft);font-size:.85em;white-space:nowrap}
.chip{display:inline-block;padding:.05rem .55rem;border-radius:999px;font-size:.82rem;font-weight:600;white-space:nowrap}
.yes{background:var(--yes-b);color:var(--yes)}.part{background:var(--part-b);color:var(--part)}
.no{background:var(--no-b);color:var(--no)}.open{background:var(--open-b);color:var(--soft)}
.answer{border-left:4px solid var(--accent);background:var(--band);padding:.7rem 1rem;border-radius:0 8px 8px 0;max-width:46rem;margin:.8rem 0}
.answer p{margin:.3rem 0}
.figs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,27rem),1fr));gap:.8rem;margin:1rem 0}
.figs svg{width:100%;height:auto;border:1px solid var(--line);border-radius:10px;display:block}
.shots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(46%,14rem),1fr));gap:.8rem;margin:1.4rem 0}
figure{margin:0}
figure img{width:100%;height:auto;border-radius:10px;display:block}
figcaption{font-size:.86rem;color:var(--soft);margin:.35rem 0 0}
.intro{display:grid;grid-template-columns:1fr 13rem;gap:1.6rem;align-items:start}
section{display:flow-root}
details{margin:.7rem 0}
summary{cursor:pointer;color:var(--accent)}
.errata tbody th{min-width:0;width:2.6rem}
sub,sup{line-height:0}
.note{color:var(--soft);font-size:.92rem}
footer{color:var(--soft);font-size:.88rem;padding:2rem 1.1rem 3rem}
@media(max-width:40rem){body{font-size:15.5px}h2{font-size:1.28rem;margin-top:2.4rem}th,td{padding:.4rem .6rem}
tbody th{min-width:7.2rem;max-width:9.5rem;overflow-wrap:anywhere}.errata td{min-width:11rem}.intro{grid-template-columns:1fr}.side{max-width:15rem}}
@media print{nav,summary{display:none}.scroll{overflow:visible}h2{break-after:avoid}}
)css";

}  // namespace silc

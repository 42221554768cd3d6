"""What a page must be for everybody: names for what can be used, contrast of what can be read, nothing wider than the
screen. The names are those that the browser itself computes for screen readers."""

NAMED_ROLES = {"button", "link", "textbox", "searchbox", "combobox", "radio", "image", "img", "table", "log", "dialog",
               "region", "group", "form", "navigation", "heading", "columnheader", "rowheader"}


def accessibility_tree(browser):
    """[(role, name)] of what is there for a screen reader."""
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]


def unnamed(browser):
    return sorted({role for role, name in accessibility_tree(browser) if role in NAMED_ROLES and not name.strip()})


# WCAG 2: the ratio of luminances of each text and what is behind it; 4.5, or 3 for large text.
CONTRAST = """
const pixel = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
}
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
function behind(element) {
  if (!element) return rgba('Canvas');
  const own = rgba(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own : over(own, behind(element.parentElement));
}
const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const found = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || element.closest('.spoken, option, noscript')) continue;
  if (!element.checkVisibility({visibilityProperty: true})) continue;
  const style = getComputedStyle(element), back = behind(element);
  const [a, b] = [luminance(over(rgba(style.color), back)), luminance(back)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
  const name = `${element.tagName}.${element.className}`;
  if (ratio < (large ? 3 : 4.5)) found.set(name, `${ratio.toFixed(2)} ${node.data.trim().slice(0, 30)}`);
}
return [...found].map((pair) => pair.join(': '));
"""


def low_contrast(browser):
    return browser.run(CONTRAST)


# Colours of lines in charts, and of borders of fields: 3 is enough.
GRAPHICS = """
const style = getComputedStyle(document.documentElement);
const pixel = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
function luminance(name) {
  pixel.fillStyle = style.getPropertyValue(name); pixel.fillRect(0, 0, 1, 1);
  const [r, g, b] = pixel.getImageData(0, 0, 1, 1).data;
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
}
const names = ['--line-0', '--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--field', '--accent'];
return names.filter((name) => {
  const [a, b] = [luminance(name), luminance('--card')];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3;
});
"""


def low_contrast_graphics(browser):
    return browser.run(GRAPHICS)


# Elements that reach beyond the screen, but for those within something that scrolls by itself.
TOO_WIDE = """
const width = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll('body *')]
    .filter((e) => e.checkVisibility() && !e.closest('.lines, pre, .spoken, .skip, thead'))
    .filter((e) => e.getBoundingClientRect().right > width + 1).map((e) => `${e.tagName}.${e.className}`);
const all = document.documentElement.scrollWidth;
if (all > width) wide.push(`the page: ${all} > ${width}`);
return [...new Set(wide)];
"""


def too_wide(browser):
    return browser.run(TOO_WIDE)


# Structure that no name shows: one h1, no level of headings left out, ids once, fields with labels.
STRUCTURE = """
const wrong = [];
const levels = [...document.querySelectorAll('h1, h2, h3')].filter((h) => h.checkVisibility())
    .map((h) => Number(h.tagName[1]));
if (levels.filter((level) => level === 1).length !== 1) wrong.push(`${levels.filter((l) => l === 1).length} h1`);
levels.forEach((level, i) => { if (i && level > levels[i - 1] + 1) wrong.push(`h${level} after h${levels[i - 1]}`); });
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
if (new Set(ids).size !== ids.length) wrong.push(`ids twice: ${ids.filter((id, i) => ids.indexOf(id) !== i)}`);
for (const tag of ['header', 'main']) if (document.querySelectorAll(tag).length !== 1) wrong.push(`not one ${tag}`);
for (const field of document.querySelectorAll('input, select')) {
  if (!field.labels.length) wrong.push(`no label: ${field.outerHTML}`);
}
if (!document.documentElement.lang || !document.title) wrong.push('no language or no title');
return wrong;
"""


def wrong_structure(browser):
    return browser.run(STRUCTURE)

/** Faults of the layout of the screen that a browser shows. */
import type { Page } from 'playwright-core'

/** Characters up to which a word stays on one line (src/page/markup/long-words.ts). */
const WHOLE = 16

/**
 * Runs in the page, with all details open. Returns a line for a page that is wider than the window, text that is wider than its
 * element or field, the last figure alone in a row, a row of headings or a value with its unit on several lines, a word that is broken where no sign is, and a chart with an axis of fewer than two labels or with labels over each other.
 */
const FAULTS = `(() => {
  const faults = []
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })
  const textOf = (node) => node.textContent.trim().replaceAll(/\\s+/g, ' ').slice(0, 60)
  const closed = [...document.querySelectorAll('main details:not([open])')]
  for (const details of closed) details.open = true
  const root = document.documentElement
  if (root.scrollWidth > innerWidth) faults.push('the page is ' + root.scrollWidth + ' pixels wide')
  for (const element of document.querySelectorAll('main *, footer *')) {
    if (!isShown(element) || element.closest('svg, .unseen, pre, .plot') !== null) continue
    if (['INPUT', 'SELECT'].includes(element.tagName) || getComputedStyle(element).display === 'inline') continue
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1) faults.push('too narrow: ' + textOf(element))
  }
  const brush = document.createElement('canvas').getContext('2d')
  for (const field of document.querySelectorAll('main input[placeholder]')) {
    const { fontStyle, fontWeight, fontSize, fontFamily } = getComputedStyle(field, '::placeholder')
    const { paddingLeft, paddingRight } = getComputedStyle(field)
    brush.font = [fontStyle, fontWeight, fontSize, fontFamily].join(' ')
    const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
    if (isShown(field) && brush.measureText(field.placeholder).width > room + 1) faults.push('too narrow: ' + field.placeholder)
  }
  for (const row of document.querySelectorAll('thead tr')) {
    const tops = new Set([...row.cells].filter(isShown).map((cell) => Math.round(cell.getBoundingClientRect().top)))
    if (tops.size > 1) faults.push('headings below each other: ' + textOf(row))
  }
  for (const list of document.querySelectorAll('main .queues')) {
    const last = list.lastElementChild.getBoundingClientRect()
    const isAlone = ![...list.children].slice(0, -1).some((item) => Math.abs(item.getBoundingClientRect().top - last.top) < 2)
    if (isAlone && last.width < list.clientWidth - 4) faults.push('alone in its row: ' + textOf(list.lastElementChild))
  }
  const range = document.createRange()
  for (const value of document.querySelectorAll('.lines > *')) {
    range.selectNodeContents(value)
    const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top / 8)))
    if (isShown(value) && lines.size > 1) faults.push('a value on two lines: ' + textOf(value))
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node; (node = walker.nextNode()) !== null;) {
    if (!isShown(node.parentElement) || node.parentElement.closest('svg, script, style, option, .unseen') !== null) continue
    for (const word of node.data.matchAll(/\\S+/g)) {
      if (word[0].length > ${WHOLE}) continue
      let top = null
      for (let at = 0; at < word[0].length; at++) {
        range.setStart(node, word.index + at)
        range.setEnd(node, word.index + at + 1)
        const box = range.getBoundingClientRect()
        if (box.width === 0) continue
        if (top !== null && box.top > top + 4 && /^[\\p{L}\\p{N}]{2}$/u.test(word[0].slice(at - 1, at + 1))) faults.push('broken: ' + word[0].slice(0, at) + '|' + word[0].slice(at))
        top = box.top
      }
    }
  }
  for (const drawing of document.querySelectorAll('.plot > svg:not(.rows)')) {
    if (!isShown(drawing)) continue
    const labels = [...drawing.querySelectorAll('text')].filter((label) => label.getBoundingClientRect().width > 0)
    const boxes = labels.map((label) => label.getBoundingClientRect())
    for (const anchor of drawing.closest('.timeline') === null ? ['end', 'middle'] : [])
      if (labels.filter((label) => label.parentElement.tagName === 'g' && label.getAttribute('text-anchor') === anchor).length < 2)
        faults.push('an axis with one label: ' + drawing.querySelector('title').textContent)
    boxes.forEach((one, i) =>
      boxes.slice(i + 1).forEach((other, j) => {
        const across = Math.min(one.right, other.right) - Math.max(one.left, other.left)
        const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
        if (across > 1 && down > 4) faults.push('labels over each other: ' + labels[i].textContent + ', ' + labels[i + 1 + j].textContent)
      }),
    )
  }
  for (const details of closed) details.open = false
  return [...new Set(faults)]
})()`

export const layoutFaults = (page: Page): Promise<readonly string[]> => page.evaluate(FAULTS)

/** Charts: their values by arrow keys, and their next point when an interval has ended. Without the script the values are in a table. */
import { load } from './loaded-screen.js'

/** Time after the end of an interval until its sum is asked for, and until a request that failed is made again, in ms. */
const LATER = 2_000
const AGAIN = 30_000
/** Interval at which charts are looked at, in ms. */
const TICK = 1_000
/** Time limit of a request, in ms. */
const ANSWER = 10_000

/**
 * Shows the values at a band of a chart below it, and marks the band.
 * @param {Element} plot
 * @param {Element | undefined} band
 */
function choose(plot, band) {
  plot.querySelector('.band.chosen')?.classList.remove('chosen')
  band?.classList.add('chosen')
  const output = plot.querySelector('output')
  if (output !== null) output.textContent = band?.textContent?.replaceAll('\n', ' · ') ?? ''
}

/**
 * @param {Element} plot
 * @param {number} by bands to the right
 */
function move(plot, by) {
  const bands = [...plot.querySelectorAll('.band')]
  const at = bands.findIndex((one) => one.classList.contains('chosen'))
  choose(plot, bands[at < 0 ? bands.length - 1 : Math.min(bands.length - 1, Math.max(0, at + by))])
}

const STEPS = /** @type {Readonly<Record<string, number>>} */ ({ ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity })

/** @param {Element} plot */
function startPlot(plot) {
  const drawing = plot.querySelector('svg[role=img]')
  if (!(drawing instanceof SVGElement) || plot.querySelector('.band') === null) return
  const output = document.createElement('output')
  output.className = 'reading'
  drawing.after(output)
  drawing.setAttribute('tabindex', '0')
  drawing.setAttribute('aria-keyshortcuts', 'ArrowLeft ArrowRight')
  drawing.addEventListener('keydown', (event) => {
    const by = STEPS[event.key]
    if (by === undefined || event.ctrlKey || event.altKey || event.metaKey) return
    event.preventDefault()
    move(plot, by)
  })
  drawing.addEventListener('pointerover', ({ target }) => {
    if (target instanceof Element) choose(plot, target.closest('.band') ?? undefined)
  })
  drawing.addEventListener('pointerleave', () => choose(plot, undefined))
  drawing.addEventListener('blur', () => choose(plot, undefined))
}

const isPaused = () => document.visibilityState !== 'visible' || document.querySelector('[data-pause][aria-pressed=true]') !== null

/** A chart whose values are being read stays as it is. @param {Element} chart */
const isRead = (chart) => chart.matches(':focus-within, :hover') || chart.querySelector('details[open]') !== null

/**
 * @param {string} path
 * @returns {Promise<HTMLElement | null>} null when the server does not answer, or asks for a login
 */
async function fetched(path) {
  try {
    return (await load(path, AbortSignal.timeout(ANSWER))).querySelector('[data-chart]')
  } catch {
    return null
  }
}

/** Times at which charts are asked for again, in ms. @type {WeakMap<HTMLElement, number>} */
const dueAt = new WeakMap()

/** @param {HTMLElement} chart */
function startChart(chart) {
  for (const plot of chart.querySelectorAll('.plot')) startPlot(plot)
  dueAt.set(chart, Date.now() + Number(chart.dataset['wait']) + LATER)
}

/** @param {HTMLElement} chart */
async function renew(chart) {
  dueAt.set(chart, Date.now() + AGAIN)
  const next = await fetched(chart.dataset['chart'] ?? '')
  if (next === null || !chart.isConnected || isRead(chart)) return
  chart.replaceWith(next)
  startChart(next)
}

const charts = () => [...document.querySelectorAll('[data-chart]')].filter((one) => one instanceof HTMLElement)

/**
 * Adds the values of the charts in a part of the screen.
 * @param {ParentNode} part
 */
export function addCharts(part) {
  for (const plot of part.querySelectorAll('.plot')) if (plot.closest('[data-chart]') === null) startPlot(plot)
  for (const chart of part.querySelectorAll('[data-chart]')) if (chart instanceof HTMLElement) startChart(chart)
}

/** Adds the values of all charts, and renews those that have a source. */
export function startCharts() {
  addCharts(document)
  setInterval(() => {
    if (isPaused()) return
    for (const chart of charts()) if (!isRead(chart) && Date.now() >= (dueAt.get(chart) ?? 0)) void renew(chart)
  }, TICK)
}

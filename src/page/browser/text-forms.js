/** Forms of live texts: the same texts as the server makes (src/presentation/text.ts). */

const UNITS = /** @type {const} */ ([
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
])

/**
 * `1,234,567`
 * @param {number} value
 */
export const count = (value) => String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')

/**
 * Recipients per second: `0`, `<0.1`, `2.1`, `38`, `1,204`.
 * @param {number} value
 */
export const rate = (value) => (value === 0 ? '0' : value < 0.05 ? '<0.1' : value < 9.95 ? value.toFixed(1) : count(Math.round(value)))

/**
 * A duration in its two largest units: `3h 12m`, `45s`, `0s`.
 * @param {number} seconds
 */
export function span(seconds) {
  let rest = Math.max(0, Math.round(seconds))
  const texts = []
  for (const [unit, length] of UNITS) {
    const figure = Math.floor(rest / length)
    rest -= figure * length
    if (figure > 0) texts.push(`${figure}${unit}`)
    else if (texts.length > 0) break
  }
  return texts.slice(0, 2).join(' ') || '0s'
}

/** Number of addresses that are named. */
const ADDRESSES_NAMED = 3

/**
 * `: 20 connecting to 192.0.2.31`; empty for none.
 * @param {readonly { readonly address: string, readonly count: number }[]} addresses
 */
export function connecting(addresses) {
  const named = addresses.slice(0, ADDRESSES_NAMED).map((one) => `${count(one.count)} connecting to ${one.address}`)
  return named.length === 0 ? '' : `: ${named.join(', ')}`
}

/**
 * `in 12m`, `3h 5m ago`, `now`
 * @param {number} seconds from now; negative in the past
 */
export function distance(seconds) {
  const text = span(Math.abs(seconds))
  if (text === '0s') return 'now'
  return seconds > 0 ? `in ${text}` : `${text} ago`
}

/**
 * A relative time in the form of its element.
 * @param {number} seconds from now; negative in the past
 * @param {string | undefined} form
 */
export function relative(seconds, form) {
  if (form === 'age') return span(Math.max(0, -seconds))
  if (form === 'due' && seconds <= 0) return 'now'
  return distance(seconds)
}

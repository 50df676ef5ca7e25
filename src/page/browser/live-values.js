/** Finds the number of a live element in the JSON of its source. */

/** Maximum number of entries of `largest_destinations` (LARGEST of src/queue/queue-status.ts). */
const LARGEST = 20

/**
 * The member of a value at a path. A segment names a member, or the entry of a list by its queue, destination, name, address or else
 * position.
 * @param {unknown} value
 * @param {string} path
 * @returns {unknown}
 */
export function memberAt(value, path) {
  /** @type {unknown} */
  let found = value
  for (const segment of path.split('/').map(decodeURIComponent)) {
    if (Array.isArray(found))
      found =
        found.find(
          (one) => one?.queue_name === segment || one?.destination === segment || one?.name === segment || one?.address === segment,
        ) ?? found[Number(segment)]
    else if (typeof found === 'object' && found !== null) found = Reflect.get(found, segment)
    else return undefined
  }
  return found
}

/**
 * The number at a path; null when the value does not tell it, so that the shown one stays. A queue or destination without mail, and
 * an address without connections, is absent from the lists.
 * @param {unknown} value
 * @param {string} path
 * @returns {number | null}
 */
export function liveNumber(value, path) {
  const found = memberAt(value, path)
  if (found !== undefined) return typeof found === 'number' ? found : null
  const [list, ...rest] = path.split('/')
  if (list === 'queues') return 0
  if (list === 'deliveries') return memberAt(value, list) === undefined ? null : 0
  if (list !== 'largest_destinations') return null
  const closed = memberAt(value, ['closed_destinations', ...rest].join('/'))
  if (typeof closed === 'number') return closed
  const largest = memberAt(value, list)
  return Array.isArray(largest) && largest.length < LARGEST ? 0 : null
}

/**
 * The versions of Node that run deferd, and the options with which they do. Plain JavaScript, that old versions of Node can parse and link: the launcher and the entries of
 * the package load this file before any other.
 */

/**
 * The reason why a version of Node cannot run deferd; null for one that can.
 *
 * @param {string} version without a leading `v`
 * @param {string} manifest text of package.json, whose `engines`, `>=MAJOR.MINOR`, is the one place of the oldest version
 * @returns {string | null}
 */
export function nodeRefusal(version, manifest) {
  const [major, minor] = JSON.parse(manifest).engines.node.match(/\d+/g).map(Number)
  const [runningMajor, runningMinor] = version.split('.').map(Number)
  if (runningMajor > major || (runningMajor === major && runningMinor >= minor)) return null
  return `deferd needs Node ${major}.${minor} or newer, and this is Node ${version}`
}

/**
 * Options that limit the memory of a daemon, which by itself takes 140 MB more than it needs: V8 sets aside 134 MB for new objects. V8 13, of
 * Node 24, also collects the whole heap for every 64 MB of content, unless it counts buffers with the objects.
 *
 * @param {string} v8 version of V8
 * @returns {readonly string[]}
 */
export const memoryOptions = (v8) => [
  '--max-semi-space-size=16',
  ...(v8.startsWith('13.') ? ['--external-memory-accounted-in-global-limit'] : []),
]

/**
 * Environment of a daemon, which is read only when a process starts: two heaps of glibc, which by itself has one for each thread, and threads of libuv for
 * syncs that overlap (src/store/sqlite/durability).
 */
export const daemonEnvironment = { MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: '16' }

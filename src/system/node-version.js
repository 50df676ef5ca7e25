/**
 * The versions of Node that run deferd. Plain JavaScript, that old versions of Node can parse and link: the launcher and the entries of
 * the package load this file before any other.
 */
import { readFileSync } from 'node:fs'

/** `engines` of package.json, `>=MAJOR.MINOR`: the one place of the oldest version. */
const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const [major, minor] = engines.node.match(/\d+/g).map(Number)

/**
 * The reason why a version of Node cannot run deferd; null for one that can.
 *
 * @param {string} version without a leading `v`
 * @returns {string | null}
 */
export function nodeRefusal(version) {
  const [runningMajor, runningMinor] = version.split('.').map(Number)
  if (runningMajor > major || (runningMajor === major && runningMinor >= minor)) return null
  return `deferd needs Node ${major}.${minor} or newer, and this is Node ${version}`
}

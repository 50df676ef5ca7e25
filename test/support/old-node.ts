/** A Node in PATH that is too old for deferd, such as that of the system. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { nodeRefusal } from '../../src/system/node-version.js'

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

export interface OldNode {
  readonly path: string
  readonly version: string
}

/** The first one in PATH; null when all are new enough. */
export function oldNode(): OldNode | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, 'node')
    if (!existsSync(path)) continue
    const version = spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout.trim()
    if (nodeRefusal(version, manifest) !== null) return { path, version }
  }
  return null
}

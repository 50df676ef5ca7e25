/** The Node of an architecture, from the npm registry. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Architecture } from './architecture.ts'
import { npm } from './npm-command.ts'

/** `integrity` of the packages `node-linux-ARCHITECTURE` at the version of the development dependency `node`. package-lock.json does not have it. */
const INTEGRITY: Readonly<Record<Architecture, string>> = {
  x64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
}

interface NodeRelease {
  readonly architecture: Architecture
  readonly version: string
}

export interface NodeProgram {
  /** Path of the program. */
  readonly path: string
  /** Text of its licences. */
  readonly licence: string
}

/** Gets the program, from the cache of npm if it is there, into a folder below `work`. Throws when its contents are not those expected. */
export function nodeProgram({ architecture, version }: NodeRelease, work: string): NodeProgram {
  const folder = join(work, `node-${architecture}`)
  mkdirSync(folder)
  const name = `node-linux-${architecture}@${version}`
  npm('pack', name, '--silent', '--prefer-offline', '--pack-destination', folder)
  const archive = join(folder, `node-linux-${architecture}-${version}.tgz`)
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (found !== INTEGRITY[architecture]) throw new Error(`${name} of the registry has ${found}: expected ${INTEGRITY[architecture]}`)
  execFileSync('tar', ['-xzf', archive, '-C', folder, 'package/bin/node', 'package/LICENSE'])
  return { path: join(folder, 'package/bin/node'), licence: readFileSync(join(folder, 'package/LICENSE'), 'utf8') }
}

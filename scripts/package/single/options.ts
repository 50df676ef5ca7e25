/** Command line of `npm run package:single`. */
import { parseArgs } from 'node:util'
import { ARCHITECTURES, type Architecture } from '../architecture.ts'

export interface SingleOptions {
  readonly out: string
  readonly architectures: readonly Architecture[]
}

export const USAGE = `usage: node scripts/package/single.ts [--out FOLDER] [--architecture x64|arm64]
Writes deferd-linux-ARCHITECTURE, by default for both, and THIRD-PARTY-NOTICES, by default into ./single.`

/** Reads the arguments. Throws an Error with a sentence for wrong ones. */
export function singleOptions(args: readonly string[]): SingleOptions {
  const { values } = parseArgs({
    args: [...args],
    options: { out: { type: 'string', default: 'single' }, architecture: { type: 'string' } },
  })
  const named = ARCHITECTURES.filter((known) => known === values.architecture)
  if (values.architecture !== undefined && named.length === 0)
    throw new Error(`--architecture ${values.architecture}: expected ${ARCHITECTURES.join(' or ')}`)
  return { out: values.out, architectures: named.length === 0 ? ARCHITECTURES : named }
}

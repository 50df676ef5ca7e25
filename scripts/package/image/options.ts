/** Command line of `npm run package:image`. */
import { parseArgs } from 'node:util'
import { ARCHITECTURES, fromDebian, type Architecture } from '../architecture.ts'

export interface ImageOptions {
  readonly out: string
  readonly architectures: readonly Architecture[]
  /** Folder of the packages of Debian; null for those of the mirror. */
  readonly debian: string | null
}

export const USAGE = `usage: node scripts/package/image.ts [--out FOLDER] [--architecture amd64|arm64]... [--debian FOLDER]
Writes an OCI image layout, by default for both architectures and into ./image. The packages of Debian are those of the mirror, which are left in
FOLDER/debian; with --debian, those of a folder, as an earlier build has left them.`

/** Reads the arguments. Throws an Error with a sentence for wrong ones. */
export function imageOptions(args: readonly string[]): ImageOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      out: { type: 'string', default: 'image' },
      architecture: { type: 'string', multiple: true },
      debian: { type: 'string' },
    },
  })
  const architectures = values.architecture === undefined ? ARCHITECTURES : fromDebian(values.architecture)
  return { out: values.out, architectures, debian: values.debian ?? null }
}

/**
 * Builds the site from the pages of the checkout, into a folder for each version: `node scripts/site.ts --out FOLDER`. The sites of other versions in the
 * folder stay, and each page offers them.
 */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '../src/system/version.ts'
import { withOptions } from './package/command-line.ts'
import { readOwner } from './release/owner.ts'
import { writeSite } from './site/write-site.ts'

const USAGE = 'usage: node scripts/site.ts [--out FOLDER] [--version VERSION]\nWrites the site of a version, by default into ./site.'

const root = join(import.meta.dirname, '..')

await withOptions(
  USAGE,
  (args) =>
    parseArgs({ args: [...args], options: { out: { type: 'string', default: 'site' }, version: { type: 'string', default: VERSION } } })
      .values,
  ({ out, version }) => {
    writeSite({ root, out: resolve(out), version, homepage: readOwner(join(root, 'release/owner.json')).homepage })
    return [join(resolve(out), version, 'index.html')]
  },
)

/**
 * Verifies the files of a release, for anybody: the signature of SHA256SUMS, the digest of each file, and that a build of the signed commit gives the
 * same files. Prints the names of files that differ. Exit codes: 0 all agree, 1 something differs, 64 wrong arguments.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { errorMessage } from '../../src/system/caught-error.ts'
import { build, checkOut, ENVIRONMENTS } from './builds.ts'
import { differing, digestsOf } from './gates.ts'
import { verified } from './minisign.ts'
import { readOwner } from './owner.ts'

const ROOT = join(import.meta.dirname, '../..')

export interface VerifyTerms {
  /** Folder with the files of the release. */
  readonly folder: string
  /** Public key; that of release/owner.json when absent. */
  readonly key?: string | undefined
  /** Repository with the commit of the release. */
  readonly source: string
  /** Folder of the dependencies; those of the checkout of the release script when absent. */
  readonly modules: string
  readonly rebuild: boolean
}

/** Files of a folder beside the artefacts. */
const OWN = new Set(['SHA256SUMS', 'SHA256SUMS.minisig', 'release.json', 'release.pub'])

function releaseKey(key: string | undefined): string {
  const known = key ?? readOwner(join(ROOT, 'release/owner.json')).release_key
  if (known === '') throw new Error('the source has no release key: name it with --key, from a place that you trust')
  return known
}

/** Throws when the signature is wrong. Returns the commit, and the digests by file. */
function signedRelease({ folder, key }: VerifyTerms): { readonly commit: string; readonly digests: ReadonlyMap<string, string> } {
  const sums = readFileSync(join(folder, 'SHA256SUMS'))
  const comment = verified(sums, readFileSync(join(folder, 'SHA256SUMS.minisig'), 'utf8'), releaseKey(key))
  const [, commit = ''] = /, commit ([0-9a-f]{40})$/.exec(comment) ?? []
  if (commit === '') throw new Error(`the signature is not of a release: ${comment}`)
  return { commit, digests: digestsOf(sums.toString()) }
}

/** Digests of the files that are there. */
const presentDigests = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(folder)
      .filter((file) => !OWN.has(file))
      .map((file) => [
        file,
        createHash('sha256')
          .update(readFileSync(join(folder, file)))
          .digest('hex'),
      ]),
  )

function rebuilt(commit: string, { source, modules }: VerifyTerms): ReadonlyMap<string, string> {
  const work = mkdtempSync(join(tmpdir(), 'deferd-verify-'))
  try {
    const checkout = join(work, 'deferd')
    checkOut(source, commit, checkout, modules)
    return build(checkout, join(work, 'files'), ENVIRONMENTS[0])
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Sentences about what differs; none when all agree. Throws a sentence when the signature is wrong or the build fails. */
export function verifyRelease(terms: VerifyTerms): readonly string[] {
  const { commit, digests } = signedRelease(terms)
  const present = presentDigests(terms.folder)
  const changed = differing(digests, present).map((file) =>
    present.has(file)
      ? digests.has(file)
        ? `${file} is not the file of the release`
        : `${file} is not of the release`
      : `${file} is missing`,
  )
  if (!terms.rebuild) return changed
  const own = rebuilt(commit, terms)
  return [...changed, ...differing(digests, own).map((file) => `${file} differs from that of a build of ${commit}`)]
}

const USAGE = `usage: node scripts/release/verify.ts FOLDER [--key KEY] [--source REPOSITORY] [--modules FOLDER] [--no-build]
KEY is the public key of minisign(1), by default that of release/owner.json. Run npm ci before: the build needs the dependencies.`

function termsOf(args: readonly string[]): VerifyTerms {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      key: { type: 'string' },
      source: { type: 'string' },
      modules: { type: 'string' },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const [folder] = positionals
  if (folder === undefined || positionals.length > 1) throw new Error('expected one folder')
  return {
    folder: resolve(folder),
    key: values.key,
    source: resolve(values.source ?? ROOT),
    modules: resolve(values.modules ?? join(ROOT, 'node_modules')),
    rebuild: !values['no-build'],
  }
}

function main(): number {
  let terms: VerifyTerms
  try {
    terms = termsOf(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`${errorMessage(error)}\n${USAGE}\n`)
    return 64
  }
  try {
    const differences = verifyRelease(terms)
    process.stdout.write(differences.length === 0 ? 'all files are those of the release\n' : differences.map((one) => `${one}\n`).join(''))
    return differences.length === 0 ? 0 : 1
  } catch (error) {
    process.stderr.write(`${errorMessage(error)}\n`)
    return 1
  }
}

if (import.meta.main) process.exitCode = main()

/**
 * Faults of a package for npm that publint and Are the types wrong find, in the profile for packages of ECMAScript modules only: its CommonJS users load
 * it by require(esm). `node scripts/package/npm-faults.ts deferd-1.0.0.tgz` prints them, and ends with 1 when there is one.
 */
import { readFileSync } from 'node:fs'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'

/** Ways to resolve a module that the profile `esm-only` passes over. */
const PASSED_OVER: ReadonlySet<string> = new Set(['node10', 'node16-cjs'])

async function typeFaults(tarball: Uint8Array): Promise<readonly string[]> {
  const checked = await checkPackage(createPackageFromTarballData(tarball))
  if (checked.types === false) return ['the package has no types']
  return checked.problems.flatMap((problem) =>
    'resolutionKind' in problem && PASSED_OVER.has(problem.resolutionKind) ? [] : [`types: ${JSON.stringify(problem)}`],
  )
}

async function manifestFaults(tarball: Uint8Array): Promise<readonly string[]> {
  const copy = new Uint8Array(tarball)
  const { messages } = await publint({ pack: { tarball: copy.buffer }, strict: true })
  return messages.map((message) => `publint: ${JSON.stringify(message)}`)
}

/** One sentence for each fault. */
export const npmFaults = async (tarball: Uint8Array): Promise<readonly string[]> => [
  ...(await manifestFaults(tarball)),
  ...(await typeFaults(tarball)),
]

if (import.meta.main) {
  const [file] = process.argv.slice(2)
  if (file === undefined) {
    process.stderr.write('usage: node scripts/package/npm-faults.ts PACKAGE.tgz\n')
    process.exitCode = 64
  } else {
    const faults = await npmFaults(readFileSync(file))
    process.stderr.write(faults.map((fault) => `${fault}\n`).join(''))
    if (faults.length > 0) process.exitCode = 1
  }
}

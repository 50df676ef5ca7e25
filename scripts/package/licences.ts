/** Licences of the dependencies, from package-lock.json and their folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { productionDependencies, type Lock, type LockedPackage } from './production.ts'

export interface Licence extends Pick<LockedPackage, 'name' | 'version' | 'license'> {
  /** Text of the licence. */
  readonly text: string
}

/** Licences (SPDX) whose texts are all that a program with the dependency has to bring along. */
const ALLOWED: ReadonlySet<string> = new Set(['Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT', 'MIT-0'])

/** Throws for the first dependency whose licence asks for more. */
export function refuseLicences(dependencies: Iterable<Pick<Licence, 'name' | 'license'>>): void {
  for (const { name, license } of dependencies)
    if (!ALLOWED.has(license))
      throw new Error(`${name} has the licence ${license}: deferd is given away with ${[...ALLOWED].join(', ')} only, use another package`)
}

/** The part of a README below the heading of the licence. */
const inReadme = (readme: string): string => /^#+ licen[cs]e\n([^]*?)(?=^#|$(?![^]))/im.exec(readme)?.[1] ?? ''

/** The text in the folder of a package. Throws when neither a file of its own nor the README has one. */
function textIn(folder: string): string {
  const files = readdirSync(folder)
  const [own, readme] = [files.find((name) => /^licen[cs]e/i.test(name)), files.find((name) => /^readme/i.test(name))]
  const read = (name: string | undefined): string => (name === undefined ? '' : readFileSync(join(folder, name), 'utf8'))
  const text = own === undefined ? inReadme(read(readme)) : read(own)
  if (text.trim() === '') throw new Error(`${folder} has no text of its licence: it is needed for THIRD-PARTY-NOTICES`)
  return text
}

/** The dependencies that a relay needs at run time, and the development dependencies `others`. Throws for a licence that is not allowed. */
export function licences(root: string, others: readonly string[] = []): readonly Licence[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  const named = others.map((name) => {
    const folder = `node_modules/${name}`
    const { version = '', license = 'unknown' } = packages[folder] ?? {}
    return { folder, name, version, license }
  })
  const dependencies = [...productionDependencies({ packages }), ...named]
  refuseLicences(dependencies)
  return dependencies.map(({ folder, name, version, license }) => ({ name, version, license, text: textIn(join(root, folder)) }))
}

/** Licences of the dependencies, from package-lock.json and their folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Licence } from './copyright.ts'
import { productionDependencies, type Lock } from './production.ts'

/** The dependencies that a relay needs at run time, and the development dependencies `others`. */
export function licences(root: string, others: readonly string[] = []): readonly Licence[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  const named = others.map((name) => {
    const folder = `node_modules/${name}`
    return { folder, name, license: packages[folder]?.license ?? 'unknown' }
  })
  return [...productionDependencies({ packages }), ...named].map((dependency) => {
    const file = readdirSync(join(root, dependency.folder)).find((name) => /^licen[cs]e/i.test(name))
    return { ...dependency, text: file === undefined ? '' : readFileSync(join(root, dependency.folder, file), 'utf8') }
  })
}

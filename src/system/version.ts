/** Version of deferd, from package.json. */
import { resource } from './packaged-files.ts'

export const { version: VERSION } = JSON.parse(resource('package.json')) as { readonly version: string }

/** The version as a number that a queue keeps (`written_by`): 1002003 is 1.2.3. A candidate has the number of its release. */
export function versionNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/, 3).map(Number)
  return major * 1_000_000 + minor * 1_000 + patch
}

/** The version that a number of versionNumber stands for. */
export const versionOfNumber = (number: number): string =>
  [number / 1_000_000, (number / 1_000) % 1_000, number % 1_000].map(Math.trunc).join('.')

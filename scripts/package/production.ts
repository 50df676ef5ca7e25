/** The dependencies that the packages contain, from package-lock.json. */

interface LockedPackage {
  readonly dev?: boolean
  readonly license?: string
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

export interface Dependency {
  /** Path in the repository: `node_modules/@zone-eu/mailsplit`. */
  readonly folder: string
  readonly name: string
  readonly license: string
}

const FOLDER = 'node_modules/'

/** Dependencies that only compile others. */
const BUILD_ONLY: ReadonlySet<string> = new Set(['node-addon-api'])

/** Dependencies that a relay needs at run time, in alphabetical order. */
export function productionDependencies({ packages }: Lock): readonly Dependency[] {
  return Object.entries(packages)
    .filter(([folder, { dev }]) => folder.startsWith(FOLDER) && dev !== true)
    .map(([folder, { license = 'unknown' }]) => ({ folder, name: folder.slice(folder.lastIndexOf(FOLDER) + FOLDER.length), license }))
    .filter(({ name }) => !BUILD_ONLY.has(name))
    .toSorted((a, b) => (a.folder < b.folder ? -1 : 1))
}

/** Folders for the developers of a dependency, and hidden files. */
const UNUSED = /^(?:tests?|docs|examples|bench|benchmarks?|coverage)\/|(?:^|\/)\./

/** Whether Node reads the file of a dependency. `target` is the platform of the package: `linux-x64`. */
export function isRun(path: string, target: string): boolean {
  if (path === `prebuilds/${target}.node`) return true
  return /\.(?:js|cjs|mjs|json)$/.test(path) && !UNUSED.test(path)
}

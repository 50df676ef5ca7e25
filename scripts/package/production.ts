/** The dependencies that the packages contain, from package-lock.json. */

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export interface Lock {
  readonly packages: Readonly<Record<string, Locked>>
}

export interface LockedPackage {
  /** Path in the repository: `node_modules/@zone-eu/mailsplit`. */
  readonly folder: string
  readonly name: string
  readonly license: string
  readonly version: string
  /** As in package-lock.json: `sha512-…`; empty without one. */
  readonly integrity: string
  /** Names of the packages that it needs, or can use. */
  readonly dependencies: readonly string[]
}

const FOLDER = 'node_modules/'

/** Dependencies that only compile others. */
const BUILD_ONLY: ReadonlySet<string> = new Set(['node-addon-api'])

/** All packages that npm installs with deferd, in alphabetical order. */
export const lockedPackages = ({ packages }: Lock): readonly LockedPackage[] =>
  Object.entries(packages)
    .filter(([folder, { dev }]) => folder.startsWith(FOLDER) && dev !== true)
    .map(([folder, { version = '', license = 'unknown', integrity = '', dependencies = {}, optionalDependencies = {} }]) => ({
      folder,
      name: folder.slice(folder.lastIndexOf(FOLDER) + FOLDER.length),
      license,
      version,
      integrity,
      dependencies: Object.keys({ ...dependencies, ...optionalDependencies }),
    }))
    .toSorted((a, b) => (a.folder < b.folder ? -1 : 1))

/** Dependencies that a relay needs at run time, in alphabetical order. */
export const productionDependencies = (lock: Lock): readonly LockedPackage[] =>
  lockedPackages(lock).filter(({ name }) => !BUILD_ONLY.has(name))

/** Folders for the developers of a dependency, and hidden files. */
const UNUSED = /^(?:tests?|docs|examples|bench|benchmarks?|coverage)\/|(?:^|\/)\./

/** Whether Node reads the file of a dependency. `target` is the platform of the package: `linux-x64`. */
export function isRun(path: string, target: string): boolean {
  if (path === `prebuilds/${target}.node`) return true
  return /\.(?:js|cjs|mjs|json)$/.test(path) && !UNUSED.test(path)
}

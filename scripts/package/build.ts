/** Collects the contents of the packages: compiled sources, the stripped Node, and the files of the dependencies. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { changelog } from './control.ts'
import { copyrightText } from './copyright.ts'
import type { RelaySources } from './layout.ts'
import { licences } from './licences.ts'
import type { Release } from './packages.ts'
import { sbomOf } from './sbom.ts'
import { isRun, productionDependencies, type Dependency, type Lock } from './production.ts'

/** Node's name of the platform of the packages. */
const TARGET = `${process.platform}-${process.arch}`

/** A build in `work`, a folder that the caller removes. `root` is the repository, `at` the time of the packages. */
export interface BuildOptions {
  readonly root: string
  readonly work: string
  readonly release: Release
  readonly at: number
}

/** Standard output of a command. Throws with its standard error when it fails. */
const output = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/** Debian's name of the platform. */
export const debianArchitecture = (root: string): string => output('dpkg', ['--print-architecture'], root)

/** Time of the last commit, in seconds since the epoch. */
export const lastCommitAt = (root: string): number => Number(output('git', ['log', '-1', '--format=%ct'], root))

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .toSorted()

const filesIn = (root: string, folder: string): readonly string[] => filesBelow(join(root, folder)).map((path) => `${folder}/${path}`)

/** Copies a binary without its debug symbols, and returns its path from the repository. */
function stripped(from: string, to: string, { root, work }: BuildOptions): string {
  const path = join(work, to)
  mkdirSync(join(path, '..'), { recursive: true })
  execFileSync('strip', ['--strip-unneeded', '-o', path, join(root, from)])
  return relative(root, path)
}

/** Whether a script is a command of a dependency, which is not run. */
const isCommand = (path: string): boolean => readFileSync(path).subarray(0, 2).toString('latin1') === '#!'

/** Paths below the program, and the files to copy there. */
function dependencyFiles(dependencies: readonly Dependency[], options: BuildOptions): ReadonlyMap<string, string> {
  const paths = dependencies.flatMap(({ folder }) =>
    filesBelow(join(options.root, folder))
      .filter((path) => !path.includes('node_modules/') && isRun(path, TARGET))
      .map((path) => `${folder}/${path}`)
      .filter((path) => !isCommand(join(options.root, path))),
  )
  return new Map(paths.map((path) => [path, path.endsWith('.node') ? stripped(path, path, options) : path]))
}

/** Contents of the package `deferd`. Throws when tsc(1) or strip(1) fails. */
export function collect(options: BuildOptions): RelaySources {
  const { root, work, release, at } = options
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  const dist = join(work, 'dist')
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', dist], {
    cwd: root,
  })
  cpSync(join(root, 'src/page/browser'), join(dist, 'page/browser'), { recursive: true, filter: (path) => !path.endsWith('.json') })
  const dependencies = productionDependencies(JSON.parse(read('package-lock.json')) as Lock)
  return {
    node: stripped('node_modules/node/bin/node', 'node', options),
    dist: relative(root, dist),
    compiled: filesBelow(dist),
    dependencies: dependencyFiles(dependencies, options),
    manPages: filesIn(root, 'man'),
    pages: [
      'README.md',
      'RELIABILITY.md',
      'ARCHITECTURE.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'GOVERNANCE.md',
      ...filesIn(root, 'docs'),
      ...filesIn(root, 'examples'),
    ],
    migrations: filesIn(root, 'migrations'),
    read,
    copyright: copyrightText(read('LICENSE'), nodeVersion(read), licences(root)),
    changelog: changelog(release, at),
    sbom: sbomOf(root, nodeVersion(read)),
  }
}

const nodeVersion = (read: (path: string) => string): string =>
  (JSON.parse(read('node_modules/node/package.json')) as { readonly version: string }).version

/** Relation to the packages of the shared libraries of the binaries, by dpkg-shlibdeps(1), which wants a source package. */
export function sharedLibraries(sources: RelaySources, { root, work }: BuildOptions): string {
  const source = join(work, 'source')
  mkdirSync(join(source, 'debian'), { recursive: true })
  writeFileSync(join(source, 'debian/control'), 'Source: deferd\n\nPackage: deferd\nArchitecture: any\n')
  const binaries = [sources.node, ...[...sources.dependencies.values()].filter((path) => path.endsWith('.node'))]
  const found = output('dpkg-shlibdeps', ['-O', ...binaries.map((path) => `-e${join(root, path)}`)], source)
  return found.replace(/^shlibs:Depends=/, '')
}

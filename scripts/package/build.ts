/** Collects the contents of the packages: compiled sources, the stripped Node, and the files of the dependencies. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { GNU, type Architecture } from './architecture.ts'
import { changelog } from './control.ts'
import { copyrightText } from './copyright.ts'
import type { RelaySources } from './layout.ts'
import { licences } from './licences.ts'
import { nodeProgram, type NodeProgram } from './node-program.ts'
import { noticesOf } from './notices.ts'
import type { Release } from './packages.ts'
import { libraryRelation } from './shared-libraries.ts'
import { sbomOf } from './sbom.ts'
import { isRun, productionDependencies, type Lock } from './production.ts'
import { sourceDate } from './source-date.ts'
import { bomFiles } from './spdx.ts'

/** `root` is the repository, `at` the time of all files in seconds since the epoch. */
interface BuildOptions {
  readonly root: string
  readonly work: string
  readonly release: Release
  readonly at: number
}

/** Standard output of a command. Throws with its standard error when it fails. */
const output = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' }, stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .toSorted()

const filesIn = (root: string, folder: string): readonly string[] => filesBelow(join(root, folder)).map((path) => `${folder}/${path}`)

/** Copies a binary without its debug symbols, and returns the path of the copy. */
function stripped(from: string, to: string, architecture: Architecture): string {
  mkdirSync(join(to, '..'), { recursive: true })
  execFileSync(`${GNU[architecture]}-strip`, ['--strip-unneeded', '-o', to, from])
  return to
}

/** Whether a script is a command of a dependency, which is not run. */
const isCommand = (path: string): boolean => readFileSync(path).subarray(0, 2).toString('latin1') === '#!'

/** Paths below the program, and the files to copy there. */
function dependencyFiles(architecture: Architecture, { root, work }: BuildOptions): ReadonlyMap<string, string> {
  const dependencies = productionDependencies(json(root, 'package-lock.json') as Lock)
  const paths = dependencies.flatMap(({ folder }) =>
    filesBelow(join(root, folder))
      .filter((path) => !path.includes('node_modules/') && isRun(path, `linux-${architecture}`))
      .map((path) => `${folder}/${path}`)
      .filter((path) => !isCommand(join(root, path))),
  )
  const copied = (path: string): string =>
    path.endsWith('.node') ? relative(root, stripped(join(root, path), join(work, architecture, path), architecture)) : path
  return new Map(paths.map((path) => [path, copied(path)]))
}

const json = (root: string, path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** Version of Node in the packages. */
export const nodeVersion = (root: string): string =>
  (json(root, 'package.json') as { readonly devDependencies: { readonly node: string } }).devDependencies.node

/** The part of the package `deferd` that is equal on all architectures. */
type CommonSources = Omit<RelaySources, 'node' | 'notices' | 'dependencies'>

/** Compiles the sources, and reads the texts. Throws when tsc(1) fails. */
function collect(options: BuildOptions): CommonSources {
  const { root, work, release, at } = options
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  const dist = join(work, 'dist')
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', dist], {
    cwd: root,
  })
  cpSync(join(root, 'src/page/browser'), join(dist, 'page/browser'), { recursive: true, filter: (path) => !path.endsWith('.json') })
  const node = nodeVersion(root)
  return {
    dist: relative(root, dist),
    compiled: filesBelow(dist),
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
    copyright: copyrightText(read('LICENSE'), node, licences(root)),
    changelog: changelog(release, at),
    boms: bomFiles(sbomOf(root, node), at),
  }
}

/** Adds the binaries of an architecture. */
function withBinaries(build: Build, common: CommonSources, architecture: Architecture): RelaySources {
  const { root, work } = build
  const node = build.node(architecture)
  return {
    ...common,
    node: relative(root, stripped(node.path, join(work, architecture, 'node'), architecture)),
    notices: noticesOf(root, { ...node, version: nodeVersion(root) }),
    dependencies: dependencyFiles(architecture, build),
  }
}

const CHECKOUT = join(import.meta.dirname, '../..')

/**
 * A build of the artefacts of a commit, in a temporary folder. The sources are compiled once for all of them. Equal commits give equal artefacts, whatever
 * the folder, the user, the mask of modes, the time zone and the language are.
 */
export class Build implements BuildOptions, Disposable {
  readonly root = CHECKOUT
  readonly work = mkdtempSync(join(tmpdir(), 'deferd-build-'))
  readonly at = sourceDate(CHECKOUT)
  readonly release: Release
  #common: CommonSources | undefined
  readonly #nodes = new Map<Architecture, NodeProgram>()
  readonly #sources = new Map<Architecture, RelaySources>()

  constructor(version: string) {
    const { DEBFULLNAME = 'deferd maintainers', DEBEMAIL = 'maintainers@deferd.example' } = process.env
    this.release = { version, maintainer: `${DEBFULLNAME} <${DEBEMAIL}>` }
  }

  /** Tells a step on standard error. */
  progress(text: string): void {
    console.error(`${text} …`)
  }

  /** The part of the program that is equal on all architectures. Throws when tsc(1) fails. */
  get common(): CommonSources {
    if (this.#common === undefined) this.progress('compiling the sources')
    return (this.#common ??= collect(this))
  }

  /** Node for an architecture. Throws when the npm registry has another one than expected. */
  node(architecture: Architecture): NodeProgram {
    const node = this.#nodes.get(architecture) ?? nodeProgram({ architecture, version: nodeVersion(CHECKOUT) }, this.work)
    this.#nodes.set(architecture, node)
    return node
  }

  /** The program of an architecture. Throws when strip(1) fails, and when the npm registry has another Node than expected. */
  sources(architecture: Architecture): RelaySources {
    const known = this.#sources.get(architecture)
    if (known !== undefined) return known
    const { common } = this
    this.progress(`collecting Node and the dependencies for ${architecture}`)
    const sources = withBinaries(this, common, architecture)
    this.#sources.set(architecture, sources)
    return sources
  }

  [Symbol.dispose](): void {
    rmSync(this.work, { recursive: true })
  }
}

/** Relation to the packages of the shared libraries of the binaries. Throws when readelf(1) fails. */
export function sharedLibraries(sources: RelaySources, root: string): string {
  const binaries = [sources.node, ...[...sources.dependencies.values()].filter((path) => path.endsWith('.node'))]
  return libraryRelation(binaries.map((path) => output('readelf', ['--version-info', '--wide', path], root)))
}

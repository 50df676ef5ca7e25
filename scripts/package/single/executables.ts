/** Writes the executables of one file. */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ADDON, NOTICES, RESOURCE_FOLDERS, threadAsset, THREADS } from '../../../src/system/packaged-files.ts'
import { memoryOptions } from '../../../src/system/node-version.js'
import { GNU, type Architecture } from '../architecture.ts'
import { nodeVersion, type Build } from '../build.ts'
import { noticesOf } from '../notices.ts'
import { bundled } from './bundle.ts'
import type { SingleOptions } from './options.ts'

const root = join(import.meta.dirname, '../../..')

/** Node marks the executable that has contents by this text (Node.js documentation, Single executable applications). */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

const NODE = join(root, 'node_modules/.bin/node')

/** The development dependencies of which the executables have parts, or that have made them. */
const BUILDERS = ['esbuild', 'postject']

/** Standard output of a program. Throws with its standard error when it fails. */
const run = (program: string, args: readonly string[], cwd = root): string =>
  execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const strip = (architecture: Architecture, from: string, to: string): string =>
  run(`${GNU[architecture]}-strip`, ['--strip-unneeded', '-o', to, from])

/** Files that the executables have, by their names in them. The paths are in the repository. */
const resourceFiles = (): readonly (readonly [string, string])[] => [
  ['package.json', join(root, 'package.json')],
  ...RESOURCE_FOLDERS.flatMap((folder) => {
    const path = join(root, folder.startsWith('page/') ? `src/${folder}` : folder)
    const names = readdirSync(path).filter((name) => statSync(join(path, name)).isFile() && !name.endsWith('.json'))
    return names.toSorted().map((name) => [`${folder}/${name}`, join(path, name)] as const)
  }),
]

/** Writes the code into `work`, and returns the files of an executable by their names in it. The code of the process is `main.cjs`. */
async function writeCode(work: string): Promise<ReadonlyMap<string, string>> {
  writeFileSync(join(work, 'main.cjs'), await bundled(root, 'cli/main'))
  const files = new Map(resourceFiles())
  for (const name of THREADS) {
    const path = join(work, threadAsset(name))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, await bundled(root, name))
    files.set(threadAsset(name), path)
  }
  return files
}

/** Writes the contents of an executable, and returns their path. Paths of `work` are not in them. */
function writeContents(work: string, architecture: Architecture, code: ReadonlyMap<string, string>): string {
  const addon = join(work, `sqlite-${architecture}.node`)
  strip(architecture, join(root, `node_modules/better-sqlite3/prebuilds/linux-${architecture}.node`), addon)
  const [config, output] = [`${architecture}.json`, `${architecture}.blob`]
  const contents = {
    main: 'main.cjs',
    output,
    disableExperimentalSEAWarning: true,
    execArgv: memoryOptions(run(NODE, ['-p', 'process.versions.v8'])),
    // Neither are there options in NODE_OPTIONS.
    execArgvExtension: 'none',
    assets: Object.fromEntries([...code, [ADDON, addon]]),
  }
  writeFileSync(join(work, config), JSON.stringify(contents))
  run(NODE, ['--experimental-sea-config', config], work)
  return join(work, output)
}

/** Writes the executables and the notices, and returns their paths. */
export async function writeExecutables(build: Build, { out, architectures }: SingleOptions): Promise<readonly string[]> {
  const work = mkdtempSync(join(build.work, 'single-'))
  mkdirSync(out, { recursive: true })
  build.progress('bundling the sources')
  const code = await writeCode(work)
  const version = nodeVersion(root)
  const notices = join(out, NOTICES)
  const programs = architectures.map((architecture) => {
    build.progress(`building the executable for ${architecture}`)
    const node = build.node(architecture)
    writeFileSync(notices, noticesOf(root, { ...node, version }, BUILDERS))
    const program = join(work, `deferd-linux-${architecture}`)
    strip(architecture, node.path, program)
    const contents = writeContents(work, architecture, new Map([...code, [NOTICES, notices]]))
    run(NODE, [join(root, 'node_modules/postject/dist/cli.js'), program, 'NODE_SEA_BLOB', contents, '--sentinel-fuse', FUSE])
    return place(program, out)
  })
  chmodSync(notices, 0o644)
  return [...programs, notices]
}

/** Copies an executable. One that runs is replaced, not changed. */
function place(program: string, out: string): string {
  const path = join(out, program.slice(dirname(program).length + 1))
  copyFileSync(program, `${path}.partial`)
  chmodSync(`${path}.partial`, 0o755)
  renameSync(`${path}.partial`, path)
  return path
}

/**
 * The published `deferd`, `deferd/testkit` and `deferd/backoff`: a program outside the repository can name every type that an
 * exported declaration uses, every exported declaration is documented, and internal members are absent. On a Node that is too old,
 * each entry throws one sentence.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { oldNode } from './support/old-node.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'deferd-types-'))
const dist = join(folder, 'node_modules/deferd/dist')
const ENTRIES = ['index.d.ts', 'testkit/index.d.ts', 'backoff/index.d.ts']

/** Runs the compiler on a project; returns its errors. */
function compile(name: string, project: object): string {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify(project))
  try {
    return execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', file], { encoding: 'utf8' })
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout)
  }
}

mkdirSync(join(folder, 'node_modules/deferd'), { recursive: true })
// Only the types of Node: npm does not install the development dependencies of a package, among them the other @types.
mkdirSync(join(folder, 'node_modules/@types'))
symlinkSync(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'))
for (const part of ['package.json', 'bin']) cpSync(join(root, part), join(folder, 'node_modules/deferd', part), { recursive: true })
cpSync(join(root, 'src/page/browser'), join(dist, 'page/browser'), { recursive: true })
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
for (const name of Object.keys(manifest.dependencies)) symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
const emitErrors = compile('emit.json', {
  extends: join(root, 'tsconfig.build.json'),
  compilerOptions: {
    noCheck: true,
    rootDir: join(root, 'src'),
    outDir: dist,
    typeRoots: [join(root, 'node_modules/@types')],
  },
  include: [],
  files: ENTRIES.map((entry) => join(root, 'src', entry.replace('.d.ts', '.ts'))),
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, unknown>>
}

interface Declaration {
  readonly exported: boolean
  readonly kind: string
  readonly text: string
  readonly documented: boolean
}

interface Module {
  /** Names from other files, imported or exported again. */
  readonly from: ReadonlyMap<string, readonly [file: string, name: string]>
  readonly reexported: readonly string[]
  readonly declarations: ReadonlyMap<string, Declaration>
}

const old = oldNode()

/** Runs a program outside the repository. */
function run(node = '', name: string, program: string): { readonly stderr: string; readonly status: number | null } {
  writeFileSync(join(folder, name), program)
  const { stderr, status } = spawnSync(node, [join(folder, name)], { encoding: 'utf8' })
  return { stderr, status }
}

const modules = new Map<string, Module>()

/** Reads an emitted file; declarations end where the next one begins. */
function moduleAt(file: string): Module {
  const known = modules.get(file)
  if (known !== undefined) return known
  const text = readFileSync(join(dist, file), 'utf8')
  const from = new Map<string, readonly [string, string]>()
  const reexported: string[] = []
  for (const [, keyword, names = '', source = ''] of text.matchAll(/^(import|export)(?: type)? \{([^}]*)\} from '(\.[^']+)'/gm)) {
    const target = posix.join(posix.dirname(file), source).replace(/\.ts$/, '.d.ts')
    for (const item of names.split(',').map((name) => name.trim().replace(/^type /, ''))) {
      if (item === '') continue
      const [name = '', alias = name] = item.split(' as ')
      from.set(alias, [target, name])
      if (keyword === 'export') reexported.push(alias)
    }
  }
  const declarations = new Map<string, Declaration>()
  const starts = [...text.matchAll(/^(export )?(?:declare )?(?:abstract )?(interface|type|class|function|const) (\w+)/gm)]
  for (const [i, { 1: exported, 2: kind = '', 3: name = '', index }] of starts.entries()) {
    const body = text.slice(index, starts[i + 1]?.index).replaceAll(/\/\*[\s\S]*?\*\//g, '')
    declarations.set(name, { exported: exported !== undefined, kind, text: body, documented: /\*\/\s*$/.test(text.slice(0, index)) })
  }
  const module = { from, reexported, declarations }
  modules.set(file, module)
  return module
}

/** The file that declares a name; undefined for names of libraries and of type parameters. */
function declaredIn(file: string, name: string): readonly [file: string, name: string] | undefined {
  const { declarations, from } = moduleAt(file)
  if (declarations.has(name)) return [file, name]
  const target = from.get(name)
  return target === undefined ? undefined : declaredIn(...target)
}

const declarationOf = (file: string, name: string): Declaration | undefined => moduleAt(file).declarations.get(name)

const keyOf = ([file, name]: readonly [string, string]): string => `${dirname(file)}/${name}`

/** Exported types that the exports of an entry use, directly or through others, and that the entry does not export. */
function unnameable(entry: string): string[] {
  const exported = moduleAt(entry).reexported.flatMap((name) => {
    const place = declaredIn(entry, name)
    return place === undefined ? [] : [place]
  })
  const seen = new Set(exported.map(keyOf))
  const missing: string[] = []
  for (const todo = [...exported]; todo.length > 0;) {
    const [file, name] = todo.pop() ?? ['', '']
    // `typeof` names a value, which a caller needs no name for.
    const words = (declarationOf(file, name)?.text ?? '').replaceAll(/typeof \w+/g, '').match(/\b[A-Za-z_]\w*\b/g)
    for (const word of new Set(words)) {
      const place = declaredIn(file, word)
      const declaration = place === undefined ? undefined : declarationOf(...place)
      if (place === undefined || declaration === undefined || seen.has(keyOf(place))) continue
      if (!declaration.exported || declaration.kind === 'function' || declaration.kind === 'const') continue
      seen.add(keyOf(place))
      missing.push(`${keyOf(place)}, used by ${name}`)
      todo.push(place)
    }
  }
  return missing
}

test('declarations are emitted without errors', () => expect(emitErrors).toBe(''))

describe.each(ENTRIES)('%s', (entry) => {
  test('exports every type that its declarations use', () => expect(unnameable(entry)).toEqual([]))

  test('has a comment on every exported declaration', () => {
    const bare = moduleAt(entry).reexported.filter((name) => {
      const place = declaredIn(entry, name)
      return place === undefined || declarationOf(...place)?.documented !== true
    })
    expect(bare).toEqual([])
  })
})

test('a program outside the repository gets these types, checked, without internal members', () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'program.ts'),
    `import { configFrom, Events, startDaemon, type Config } from 'deferd'
import { attempts, POLICY_NAMES } from 'deferd/backoff'
import { createWorld, type World } from 'deferd/testkit'
const loaded = configFrom({ queue_directory: '/tmp/queue' })
const config: Config = loaded.config
const daemon = await startDaemon({ loaded, events: new Events(() => 0) })
const world: World = await createWorld({ config: { maximal_queue_lifetime: '5d' } })
world.destination('a.example').greylists('5m').isDownFor('3d')
const times: readonly number[] = [...attempts('doubling', { until: '2d' })]
console.log(config.maximal_queue_lifetime + 1, daemon.listeners[0]?.port, POLICY_NAMES.length, times)
// @ts-expect-error -- an unknown stage
world.rule({ at: 'nowhere', drop: 'fin' })
// @ts-expect-error -- internal
world.clock
// @ts-expect-error -- internal
await daemon.open()
// @ts-expect-error -- internal
world.kill()
`,
  )
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    strict: true,
    noEmit: true,
    types: ['node'],
  }
  expect(compile('program.json', { compilerOptions, files: ['program.ts'] })).toBe('')
})

const entries = Object.keys(manifest.exports).map((entry) => `deferd${entry.slice(1)}`)

test('every entry can be imported and required', () => {
  const program = entries.map((name) => `require('${name}'), await import('${name}')`).join(', ')
  expect(run(process.execPath, 'program.cjs', `void (async () => [${program}])()`)).toEqual({ stderr: '', status: 0 })
})

describe.skipIf(old === null)(`on an old Node${old === null ? ' (not run: no folder of PATH has one)' : ''}`, () => {
  const tooOld = `deferd needs Node ${manifest.engines.node.replace('>=', '')} or newer, and this is Node ${old?.version}`

  test.each(entries)('import of %s throws one sentence', (name) => {
    expect(run(old?.path, 'program.mjs', `import '${name}'`).stderr).toContain(`\nError: ${tooOld}: install a newer Node\n    at `)
  })

  test('require throws it too, in versions that can require ES modules', () => {
    const { stderr, status } = run(old?.path, 'program.cjs', `try { require('deferd') } catch (error) { console.error(error.message) }`)
    expect(status).toBe(0)
    expect(stderr).toMatch(stderr.includes('require() of ES Module') ? /not supported/ : `${tooOld}: install a newer Node\n`)
  })

  test.each([root, join(folder, 'node_modules/deferd')])('%s/bin/deferd.js ends with 69 and the sentence', (place) => {
    const { stderr, status } = spawnSync(old?.path ?? '', [join(place, 'bin/deferd.js'), 'queue', 'list'], { encoding: 'utf8' })
    expect({ stderr, status }).toEqual({ stderr: `${tooOld}: use "npm start" in a checkout, or install a newer Node.\n`, status: 69 })
  })
})

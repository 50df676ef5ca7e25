/**
 * Layering of the sources: folders are layers. Reads the import lines; every import points to a folder further up in the list
 * below, or to its own folder.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { THREADS } from '../src/system/packaged-files.ts'

/** Layers from the bottom to the top; `.` is the package's entry. */
const LAYERS = [
  'system/dns',
  'system',
  'system/calendar',
  'system/files',
  'mail',
  'mail/mime',
  'backoff',
  'planner',
  'calendar',
  'patterns',
  'sessions',
  'events',
  'config/values',
  'config/values/tables',
  'config/options',
  'config',
  'oauth',
  'rewriting',
  'dkim',
  'checks',
  'store/outbox',
  'store/records',
  'store/search',
  'store/counts',
  'store',
  'store/erasure',
  'store/decisions',
  'store/folder',
  'store/sql',
  'store/membership',
  'store/memory',
  'store/postgres/session',
  'store/postgres/writing',
  'store/postgres/committing',
  'store/postgres/search',
  'store/postgres/departed',
  'store/postgres/moving',
  'store/postgres',
  'store/sqlite/durability',
  'store/sqlite/file',
  'store/sqlite/records',
  'store/sqlite/search',
  'store/sqlite/outbox',
  'store/sqlite/erasure',
  'store/sqlite/writing',
  'store/sqlite/moving',
  'store/sqlite/reading',
  'store/sqlite/core',
  'store/sqlite/clients',
  'store/sqlite',
  'delivery',
  'delivery/routing',
  'delivery/dane',
  'delivery/tls',
  'delivery/sts',
  'delivery/smtp',
  'telemetry/kinds',
  'telemetry',
  'telemetry/metrics',
  'outbox',
  'suppression',
  'bounce',
  'queue/scheduler/hosts',
  'queue/scheduler/window',
  'queue/scheduler/rate',
  'queue/scheduler/due',
  'queue/scheduler/providers',
  'queue/scheduler/turns',
  'queue/scheduler',
  'queue/intake',
  'queue',
  'tls-reports',
  'presentation',
  'presentation/plots',
  'resources',
  'resources/plans',
  'resources/domains',
  'resources/records',
  'domain-check',
  'subscriptions',
  'access',
  'smtpd/stream',
  'smtpd/dialogue',
  'smtpd',
  'relay',
  'schedules',
  'http/requests',
  'http',
  'admin',
  'queries',
  'queries/records',
  'queries/counts',
  'queries/domains',
  'queries/programs',
  'queries/operations',
  'queries/messages',
  'api/examples',
  'api/submitted',
  'api/route',
  'api',
  'page/markup',
  'page/screens/system',
  'page/screens/history',
  'page/screens',
  'page/screens/messages',
  'page',
  'daemon/node',
  'daemon/admin',
  'daemon/upkeep',
  'daemon',
  'import/configuration',
  'import/spool',
  '.',
  'testkit/virtual',
  'testkit/oauth',
  'testkit/remote',
  'testkit/record',
  'testkit/options',
  'testkit/results',
  'testkit/scripted',
  'testkit',
  'lab/examples',
  'lab/mail',
  'lab',
  'simulator/contention',
  'simulator/scenario',
  'simulator',
  'simulator/pages',
  'cli/render',
  'cli/shell',
  'cli/queue-client',
  'cli/dkim',
  'cli/tls',
  'cli/oauth',
  'cli/schedule',
  'cli/retry',
  'cli/check',
  'cli/commands/simulate',
  'cli/commands/audit',
  'cli/commands/history',
  'cli/commands/sink',
  'cli/commands/lab',
  'cli/commands/record',
  'cli/commands/quota',
  'cli/commands/suppression',
  'cli/commands/queue',
  'cli/commands',
  'cli/remote',
  'cli/postfix',
  'cli',
]

/** The files of each engine that other folders than `store` may import: opening a queue, and the upkeep of its file. */
const ENGINES: Readonly<Record<string, readonly string[]>> = {
  'store/sqlite': ['open-store.ts', 'reading/sqlite-reader.ts', 'file/backup.ts', 'file/copied-queue.ts', 'file/restore.ts'],
  'store/postgres': ['open-store.ts', 'open-reader.ts', 'visiting-node.ts'],
}

/** The most files directly in one folder. */
const FILES_PER_FOLDER = 30

const root = join(import.meta.dirname, '../src')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const layerOf = (file: string): number => LAYERS.indexOf(dirname(file))

/** Targets of static, dynamic and type-only imports, as paths under src. */
const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/(?:\bfrom |\bimport |\bimport\()'(\.[^']+)'/g)].map((match) =>
    normalize(join(dirname(file), match[1] ?? '')),
  )

test('every folder with sources is a layer, and every layer has sources', () => {
  expect([...new Set(files.map((file) => dirname(file)))].toSorted()).toEqual(LAYERS.toSorted())
})

test('ARCHITECTURE.md has the folders of src in this order', () => {
  const text = readFileSync(join(root, '../ARCHITECTURE.md'), 'utf8')
  const table = text.slice(text.indexOf('| layer'), text.indexOf('\n\n', text.indexOf('| layer')))
  const named = [...table.matchAll(/`([\w-]+)`/g)].map(([, name]) => (name === 'index' ? '.' : name))
  expect(named).toEqual([...new Set(LAYERS.map((folder) => folder.split('/')[0]))])
})

test('imports point down or stay in their folder', () => {
  const rising = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => layerOf(target) > layerOf(file))
      .map((target) => `${file} -> ${target}`),
  )
  expect(rising).toEqual([])
})

test('folders outside of the store import only the openings of its engines', () => {
  const isPrivate = (target: string): boolean =>
    Object.entries(ENGINES).some(([engine, open]) => target.startsWith(`${engine}/`) && !open.includes(target.slice(engine.length + 1)))
  const imports = files
    .filter((file) => !file.startsWith('store/'))
    .flatMap((file) => importsOf(file).flatMap((target) => (isPrivate(target) ? [`${file} -> ${target}`] : [])))
  expect(imports).toEqual([])
})

test('there are no import cycles', () => {
  const imports = new Map(files.map((file) => [file, importsOf(file)]))
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (path.includes(file) || done.has(file)) return
    for (const target of imports.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  expect(cycles).toEqual([])
})

/** Packages that are loaded with a file, itself or by the files that it imports statically. */
function packagesOf(start: string): ReadonlySet<string> {
  const seen = new Set([start])
  const packages = new Set<string>()
  for (const file of seen) {
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, target = ''] of text.matchAll(/^(?:import|export)(?! type\b)(?:[^'"]*? from)? '([^']+)'/gm)) {
      if (target.startsWith('.')) seen.add(normalize(join(dirname(file), target)))
      else if (!target.startsWith('node:')) packages.add(target)
    }
  }
  return packages
}

test('a start loads the client of PostgreSQL, and a command the engines of the queue, only on demand', () => {
  expect([...packagesOf('daemon/daemon.ts')]).toEqual(expect.arrayContaining(['better-sqlite3', 'smtp-server']))
  expect([...packagesOf('daemon/daemon.ts')].filter((name) => name.startsWith('pg'))).toEqual([])
  expect([...packagesOf('daemon/shared-queue.ts')]).toContain('pg')
  expect([...packagesOf('cli/main.ts')].toSorted()).toEqual(['commander', 're2js', 'smol-toml'])
})

test('files of the package are found by one module', () => {
  const finding = files.filter((file) => /import\.meta|new Worker\(/.test(readFileSync(join(root, file), 'utf8')))
  // The library node-cron is not a file of the package.
  expect(finding.toSorted()).toEqual(['system/calendar/cron-expression.ts', 'system/packaged-files.ts'])
})

test('an entry of the command line and the code of each thread can be CommonJS: they await nothing at their top level', () => {
  const reached = new Set(['cli/main.ts', ...THREADS.map((name) => `${name}.ts`)])
  for (const file of reached) for (const target of importsOf(file)) reached.add(target)
  expect([...reached].filter((file) => /^(?:const .*= |void )?await\b|^for await\b/m.test(readFileSync(join(root, file), 'utf8')))).toEqual(
    [],
  )
})

test(`no folder has more than ${FILES_PER_FOLDER} files directly in it`, () => {
  const full = LAYERS.filter((folder) => files.filter((file) => dirname(file) === folder).length > FILES_PER_FOLDER)
  expect(full).toEqual([])
})

test('the folders for which CONTRIBUTING.md has recipes have room for two more files', () => {
  const text = readFileSync(join(root, '../CONTRIBUTING.md'), 'utf8')
  const recipes = text.slice(text.indexOf('## Recipes'))
  const named = [...recipes.matchAll(/`src\/([\w/-]+?)(?:`|\/\*|\/NAME)/g)]
    .map(([, folder = '']) => folder)
    .filter((name) => LAYERS.includes(name))
  expect(named).toEqual(expect.arrayContaining(['config/options', 'resources', 'api', 'queries', 'store/records', 'cli/commands']))
  const full = named.filter((folder) => files.filter((file) => dirname(file) === folder).length > FILES_PER_FOLDER - 2)
  expect(full).toEqual([])
})

test('no two files have the same basename, except entries, the two engines of the store and a command beside its subject', () => {
  const byName = Map.groupBy(
    files.filter((file) => basename(file) !== 'index.ts' && !dirname(file).startsWith('cli/commands')),
    (file) => basename(file),
  )
  const pairs = [...byName.values()].filter((same) => same.length > 1 && !same.every((file) => dirname(file).startsWith('store/')))
  expect(pairs).toEqual([])
})

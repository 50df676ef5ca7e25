/**
 * The published entries of the package: each exports the names of EXPORTS and no others, a program outside the repository can name every
 * type that an exported declaration uses, every exported declaration is documented, and internal members are absent. On a Node that is too
 * old, each entry throws one sentence.
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
/** The names that each entry exports, sorted: a change of the public API is a change of this table, and belongs into CHANGELOG.md. */
const EXPORTS: Readonly<Record<string, string>> = {
  'index.d.ts': `
    CannotListen ConfigError EmbeddedRelay Endpoint JsonLogRecord LogLevel NoticeAction NoticeRecipient OptionName
    ParameterValue ParsedNotice Problem PublishedEvent QueueFolderUnusable QueueInUse QueueIncompatible QueueTooNew RelayConfig
    RelayOptions RelayParameters StoreFailed StoreUnavailable WallTime parseNotice startRelay
  `,
  'events/index.d.ts': `
    AcceptedMembers AttemptMembers CloudEvent CloudEventOf EventData EventId EventPage EventType FailureClass LimitMembers ListedEvent
    MessageMembers PublishedEvent QuotaMembers RecipientMembers SuppressionMembers TestEvent TypedEvent WebhookBatch WebhookBody
  `,
  'testkit/index.d.ts': `
    AcceptedMembers AddedEvent AnsweredRequest Asserting AssertionState Attempt AttemptMembers Authority AuthorityClient
    AuthorityFailure AuthorityFailures AuthorityOptions AuthorityProvider AuthorityRequest BounceExpectation Cancelled Clock DeferdMatchers
    DeliveryStatus DestinationName DestinationState DeviceLogin DnsFault Duration Endpoint EventData EventFilter EventType
    FailureClass FailureTerms FaultStage GuardedMailbox History HistoryEntry HistoryEvent HostCertificate LastAttempt LeftOut LimitMembers LiveDestination LiveProvider
    Mail MailSignature Mailbox MatcherResult MessageId MessageMembers Notice NoticeAction NoticeRecipient Notify OperationName
    OperationSummary OptionName ParameterValue ParsedNotice PassedOver PassedReason PreviousLogin ProtectionOptions ProviderSuspended QueueTime QuotaMembers QuotaUseNow Recipient RecipientMembers
    RelayParameters RemoteDomain RemoteEvent ResendSummary Ret RuleAction RuleEffect RuleText ScriptedRequest SpokenStage Stage StsFailure StsMode StsPolicyOptions SubmitOptions SuppressOptions SuppressionMembers Suspension Time Timer Timers TlsFacts
    TlsPolicySource TlsState TypedEvent UndeliveredAttempts WORLD_CA WallTime WallView Webhook WebhookHandler WebhookOptions WebhookRequest World WorldConfig WorldEvent
    WorldOptions WorldTransport createWorld matchers
  `,
  'backoff/index.d.ts': `
    Duration EximRule FormulaName Limit POLICY_NAMES Parameters Policy PolicyError RetryAttempt RetryOptions RetryPolicy RetryRun RetrySettings
    ScheduleOptions Timer Timers WaitFacts attempts compileRetryPolicy formatPolicy jittered nextWait parsePolicy retry retryUntil
  `,
}

const ENTRIES = Object.keys(EXPORTS)

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

/** The names of the entries, as programs import them. */
const entries = Object.entries(manifest.exports).flatMap(([entry, value]) => (typeof value === 'string' ? [] : [`deferd${entry.slice(1)}`]))

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

/** Places of the declarations that an entry exports. */
const exportsOf = (entry: string): (readonly [file: string, name: string])[] =>
  moduleAt(entry).reexported.flatMap((name) => {
    const place = declaredIn(entry, name)
    return place === undefined ? [] : [place]
  })

/** Exported types that the exports of an entry use, directly or through others, and that neither the entry nor `deferd/events` exports. */
function unnameable(entry: string): string[] {
  const exported = exportsOf(entry)
  const seen = new Set([...exported, ...exportsOf('events/index.d.ts')].map(keyOf))
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
  test('exports these names and no others', () => {
    expect(moduleAt(entry).reexported.toSorted()).toEqual(EXPORTS[entry]?.trim().split(/\s+/))
  })

  test('exports every type that its declarations use', () => expect(unnameable(entry)).toEqual([]))

  test('has a comment on every exported declaration', () => {
    const bare = moduleAt(entry).reexported.filter((name) => {
      const place = declaredIn(entry, name)
      return place === undefined || declarationOf(...place)?.documented !== true
    })
    expect(bare).toEqual([])
  })
})

/** A program for each entry, as another project has them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  deferd: `import { ConfigError, startRelay, type EmbeddedRelay, type PublishedEvent, type RelayConfig } from 'deferd'
const config: RelayConfig = { queue_directory: '/tmp/queue', relayhost: '[smtp.example]:587', destination: { 'a.example': { smtp_tls_security_level: 'encrypt' } } }
const bounces: string[] = []
function seen(event: PublishedEvent): void {
  if (event.type === 'recipient.bounced') bounces.push(event.timestamp, event.data.recipient, event.data.reply ?? '')
  // @ts-expect-error -- no such type
  if (event.type === 'attempted') return
}
try {
  const relay: EmbeddedRelay = await startRelay({ config, onEvent: seen, onLog: ({ level, event, reason }) => console.log(level, event, reason) })
  await relay.reload({ ...config, maximal_queue_lifetime: '2d' })
  void relay.failed.then(({ exitCode }) => process.exit(exitCode))
  console.log(relay.listeners[0]?.port)
  // @ts-expect-error -- internal
  await relay.open()
} catch (error) {
  if (error instanceof ConfigError) console.log(error.problems.map(({ where, text }) => where + text))
}
// @ts-expect-error -- no such parameter
const wrong: RelayConfig = { maximal_queue_life: '2d' }
console.log(wrong)
`,
  'deferd/events': `import type { CloudEvent, EventPage, WebhookBatch, WebhookBody } from 'deferd/events'
export function handle(body: WebhookBody): string {
  switch (body.type) {
    case 'recipient.expired':
      return body.data.recipient + body.data.attempts.toFixed(0)
    case 'test':
      return body.data.subscription
    default:
      return body.timestamp
  }
}
const batch = JSON.parse('[]') as WebhookBatch
const page = JSON.parse('{}') as EventPage
const cloud = JSON.parse('{}') as CloudEvent
console.log(batch.map(handle), page.events.map((event) => event.id + handle(event)), page.next)
if (cloud.type === 'deferd.recipient.delivered') console.log(cloud.data.relay?.length)
`,
  'deferd/backoff': `import { attempts, compileRetryPolicy, POLICY_NAMES, type RetrySettings } from 'deferd/backoff'
const settings: RetrySettings = { retry_backoff: 'doubling', minimal: 300_000, maximal: 4_000_000 }
const times: readonly number[] = [...attempts('doubling', { until: '2d' })]
console.log(compileRetryPolicy(settings).inQueue, POLICY_NAMES.length, times)
`,
  'deferd/testkit': `import { createWorld, type World } from 'deferd/testkit'
const world: World = await createWorld({ config: { maximal_queue_lifetime: '5d' } })
world.destination('a.example').greylists('5m').isDownFor('3d')
world.stepClock('-5m')
for (const one of world.history().events) if (one.where === 'queue' && one.event.type === 'message.accepted') console.log(one.event.data.size)
// @ts-expect-error -- an unknown stage
world.rule({ at: 'nowhere', drop: 'fin' })
// @ts-expect-error -- internal
world.clock
// @ts-expect-error -- internal
world.kill()
// @ts-expect-error -- internal
world.history().trace
`,
}

test('every entry has a program here', () => expect(Object.keys(PROGRAMS).toSorted()).toEqual(entries.toSorted()))

test.each(Object.entries(PROGRAMS))(
  'a program outside the repository gets the types of %s, checked, without internal members',
  (entry, program) => {
    const name = entry.replace('/', '-')
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, `${name}.ts`), program)
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      types: ['node'],
    }
    expect(compile(`${name}.json`, { compilerOptions, files: [`${name}.ts`] })).toBe('')
  },
)

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

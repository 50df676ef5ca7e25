/**
 * The public surface of deferd, on which programs and operators rely, derived from the sources. test/upgrade/VERSION/surface.json has that of each
 * release; docs/compatibility.md has the promise. `node scripts/release/surface.ts` writes that of the version in package.json.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import { openApiDocument } from '../../src/api/openapi.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { EX } from '../../src/cli/shell/exit.ts'
import { OPTIONS } from '../../src/config/options.ts'
import type { Option } from '../../src/config/values/option.ts'
import { EVENTS } from '../../src/events/event-types.ts'
import { LAB_API, labRoutes } from '../../src/lab/lab-server.ts'
import type { Lab } from '../../src/lab/lab.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { realClock } from '../../test/support/real-clock.ts'
import { VERSION } from '../../src/system/version.ts'
import { KINDS } from '../../src/telemetry/events.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import { commandTree, type CommandNode } from '../command-tree.ts'
import { apiSurface, type OpenApiDocument, type Surface } from './api-surface.ts'
import { releaseFolder } from './frozen-migrations.ts'

/** The parts of the surface, each with its promises by name. */
export type Surfaces = Readonly<Record<string, Surface>>

const ROOT = join(import.meta.dirname, '../..')

/** Names that the entries of the package export. */
function exported(): Surface {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>
  }
  const entries = Object.keys(exports).filter((entry) => typeof exports[entry] === 'object')
  const found = entries.flatMap((entry) => {
    const folder = entry.slice(2)
    const source = readFileSync(join(ROOT, 'src', folder, 'index.ts'), 'utf8')
    const listed = [...source.matchAll(/^export (type )?\{([^}]*)\}/gm)].flatMap(([, type = '', names = '']) =>
      names.split(',').map((name) => ({
        type: type !== '' || /^\s*type /.test(name),
        name:
          name
            .replace(/^\s*type /, '')
            .split(' as ')
            .at(-1) ?? '',
      })),
    )
    const declared = [...source.matchAll(/^export (type|interface|const|function|class) (\w+)/gm)].map(([, kind = '', name = '']) => ({
      type: kind === 'type' || kind === 'interface',
      name,
    }))
    return [...listed, ...declared]
      .filter(({ name }) => name.trim() !== '')
      .map(({ type, name }) => [`deferd${entry.slice(1)} ${name.trim()}`, type ? 'type' : 'value'] as const)
  })
  return Object.fromEntries(found)
}

const parameters = (): Surface =>
  Object.fromEntries(
    Object.entries<Option<unknown>>(OPTIONS).flatMap(([name, { default: byDefault, perDestination, perListener }]) => [
      [name, `default ${byDefault}`],
      ...(perDestination ? [[`${name} in destination tables`, 'allowed']] : []),
      ...(perListener === true ? [[`${name} in smtpd tables`, 'allowed']] : []),
    ]),
  )

/** Exit codes that a help text names: `Exit codes: 0 copied; 69 no queue`, `exit code 78`. */
function exitCodes(notes: string): readonly string[] {
  const lists = [...notes.matchAll(/exit codes?:? ([^]*?)(?:\.\s|\n\n|$)/gi)].map(([, list = '']) => list)
  return [...new Set(lists.flatMap((list) => list.match(/(?<![\d.:-])(?:0|1|6[4-9]|7[0-8])(?=[\s,;.)]|$)/g) ?? []))]
}

function commands({ path, usage, options, commands: below, notes }: CommandNode): readonly (readonly [string, string])[] {
  const name = path.join(' ')
  return [
    [name, `command ${usage.replace('[options] ', '').replace('[options]', '').replace('[command]', '').trim()}`.trim()],
    ...options.flatMap(({ names, takesValue, choices }) =>
      names.flatMap((option) => [
        [`${name} ${option}`, takesValue ? 'option with a value' : 'option'] as const,
        ...choices.map((choice) => [`${name} ${option} ${choice}`, 'value of an option'] as const),
      ]),
    ),
    ...exitCodes(notes).map((code) => [`${name}: exit code ${code}`, 'exit code'] as const),
    ...below.flatMap(commands),
  ]
}

const logFields = (): Surface =>
  Object.fromEntries(
    Object.entries(KINDS).flatMap(([event, kind]) =>
      kind.record === null
        ? []
        : [[event, `event, ${kind.level}`], ...Object.keys(kind.record).map((member) => [`${event}.${member}`, 'member'])],
    ),
  )

const events = (): Surface =>
  Object.fromEntries(
    Object.entries(EVENTS).flatMap(([type, { members }]) => [[type, 'event'], ...members.map((member) => [`${type}.${member}`, 'member'])]),
  )

function metrics(): Surface {
  const { texts } = openMetrics({ clock: realClock, tally: async () => EMPTY_TALLY, destinations: () => [] })
  return Object.fromEntries(
    texts.flatMap(({ name, type, labels }) => [[name, type], ...labels.map((label) => [`${name}{${label}}`, 'label'])]),
  )
}

/** Exit codes of commands by meaning, and of errors that end a command, by their class. */
function exitCodeTable(): Surface {
  const classes = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [
      ...readFileSync(join(ROOT, file), 'utf8').matchAll(/^(?:export )?class (\w+) extends (?:(?!^\})[^])*?^  readonly exitCode = (\d+)/gm),
    ].map(([, name = '', code = '']) => [name, code] as const),
  )
  return Object.fromEntries([
    ...Object.entries(EX).map(([name, code]) => [String(code), name]),
    ...classes.toSorted(([one], [other]) => (one < other ? -1 : 1)),
  ])
}

const documentOf = (...described: Parameters<typeof openApiDocument>): OpenApiDocument =>
  openApiDocument(...described) as unknown as OpenApiDocument

/** The surface of this source. */
export async function publicSurface(): Promise<Surfaces> {
  return {
    exports: exported(),
    parameters: parameters(),
    commands: Object.fromEntries(commands(commandTree(await buildProgram(processShell())))),
    'exit codes': exitCodeTable(),
    log: logFields(),
    events: events(),
    metrics: metrics(),
    api: apiSurface(documentOf(documentedRoutes())),
    // The routes are described, not called.
    lab: apiSurface(documentOf(labRoutes({} as Lab), LAB_API)),
  }
}

const isRequired = (type: string): boolean => / required$|^required$/.test(type)
const withoutRequired = (type: string): string => type.replace(/ ?required$/, '')

/** Why a promise does not hold any more; null when it does. */
function breach(name: string, then: string, now: string | undefined): string | null {
  if (now === undefined) return 'is gone'
  if (then === now) return null
  if (withoutRequired(then) !== withoutRequired(now)) return `was ${then}, and is ${now}`
  if (name.startsWith('request ')) return isRequired(now) ? 'is required now' : null
  return isRequired(then) ? 'may be absent now' : null
}

/** The part that a member of a request belongs to: `request Plan.for` belongs to `request Plan`. */
const above = (name: string): string | null => {
  const at = Math.max(name.lastIndexOf('.'), name.lastIndexOf('['), name.lastIndexOf('{'))
  const query = /^request (\S+ \S+) (?:query|header|path) \S+$/.exec(name)
  return query !== null ? (query[1] ?? null) : at < 0 ? null : name.slice(0, at)
}

/** Promises of a release that this source does not keep, one sentence each. */
export const breaches = (version: string, released: Surfaces, present: Surfaces): readonly string[] =>
  Object.entries(released).flatMap(([part, promises]) => {
    const now = present[part] ?? {}
    const broken = Object.entries(promises).flatMap(([name, then]) => {
      const why = breach(name, then, now[name])
      return why === null ? [] : [`${part} of ${version}: ${name} ${why}`]
    })
    const demanded = Object.entries(now).flatMap(([name, type]) => {
      const parent = promises[name] === undefined && name.startsWith('request ') && isRequired(type) ? above(name) : null
      return parent === null || promises[parent] === undefined ? [] : [`${part} of ${version}: ${name} is new, and required`]
    })
    return [...broken, ...demanded]
  })

const surfaceFile = (version: string): string => join(releaseFolder(version), 'surface.json')

export const releasedSurface = (version: string): Surfaces => JSON.parse(readFileSync(surfaceFile(version), 'utf8')) as Surfaces

if (import.meta.main) {
  mkdirSync(releaseFolder(VERSION), { recursive: true })
  writeFileSync(surfaceFile(VERSION), `${JSON.stringify(await publicSurface(), null, 2)}\n`)
}

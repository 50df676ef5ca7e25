/**
 * Contents of a deferd.toml before it is written: parameters, tables, files that the parameters name, and comments on settings without an
 * equivalent.
 */
import { parse } from 'smol-toml'

export interface ConvertedFile {
  readonly path: string
  readonly text: string
  readonly mode: number
}

export type ParameterValue = string | readonly string[]

export interface ListenerDraft {
  readonly address: string
  readonly tls: 'none' | 'may' | 'encrypt' | 'wrapper'
  readonly auth: 'none' | 'may'
  /** Parameters that differ from those of the relay. */
  readonly settings: Map<string, ParameterValue>
}

const ANYONE = 0o644

export class ConfigurationDraft {
  /** Folder of deferd.toml, into which files are written. */
  readonly folder: string
  /** Parameters and comments, in order. */
  readonly #lines: ({ readonly name: string; readonly value: ParameterValue } | { readonly note: string })[] = []
  /** Lists of restrictions by name. */
  readonly classes = new Map<string, readonly string[]>()
  readonly transports = new Map<string, string>()
  readonly #transportNotes: string[] = []
  readonly listeners: ListenerDraft[] = []
  readonly destinations = new Map<string, Map<string, string>>()
  readonly files = new Map<string, ConvertedFile>()

  constructor(folder: string) {
    this.folder = folder
  }

  /** A draft without parameters, whose comments are apart. */
  get blank(): ConfigurationDraft {
    return new ConfigurationDraft(this.folder)
  }

  /** A later value replaces an earlier one. */
  set(name: string, value: ParameterValue): void {
    const at = this.#lines.findIndex((line) => 'name' in line && line.name === name)
    if (at >= 0) this.#lines[at] = { name, value }
    else this.#lines.push({ name, value })
  }

  has(name: string): boolean {
    return this.#lines.some((line) => 'name' in line && line.name === name)
  }

  /** The parameters that are set. */
  get parameters(): ReadonlyMap<string, ParameterValue> {
    return new Map(this.#lines.flatMap((line) => ('name' in line ? [[line.name, line.value] as const] : [])))
  }

  get notes(): readonly string[] {
    return this.#lines.flatMap((line) => ('note' in line ? [line.note] : []))
  }

  note(text: string): void {
    this.#lines.push({ note: text })
  }

  noteTransport(text: string): void {
    this.#transportNotes.push(text)
  }

  setFor(heading: string, name: string, value: string): void {
    this.destinations.set(heading, (this.destinations.get(heading) ?? new Map<string, string>()).set(name, value))
  }

  addFile(path: string, text: string, mode = ANYONE): void {
    this.files.set(path, { path, text, mode })
  }

  /** Replaces a parameter, or an entry of a table, by a comment. Returns false when neither exists. */
  withdraw(key: readonly string[], why: string): boolean {
    const [first = '', ...rest] = key
    if (first === 'transport_maps') {
      const entry = rest.join('.')
      const found = this.transports.delete(entry)
      if (found) this.noteTransport(`${entry}: ${why}`)
      return found
    }
    if (first === 'smtpd_restriction_classes') {
      const hadClasses = this.classes.size > 0
      this.classes.clear()
      return hadClasses && (this.note(`smtpd_restriction_classes: ${why}`), true)
    }
    if (first === 'destination')
      return this.destinations.delete(rest[0] ?? '') && (this.noteTransport(`destination ${rest[0]}: ${why}`), true)
    const [n = '', name = ''] = rest
    if (first === 'smtpd' && this.listeners[Number(n)]?.settings.delete(name) === true)
      return (this.note(`smtpd ${this.listeners[Number(n)]?.address}: ${name}: ${why}`), true)
    if (first === 'smtpd' && this.listeners.length > 0) return ((this.listeners.length = 0), this.note(`smtpd: ${why}`), true)
    const at = this.#lines.findIndex((line) => 'name' in line && line.name === first)
    const line = this.#lines[at]
    if (line === undefined || !('name' in line)) return false
    this.#lines[at] = { note: `${line.name} = ${show(line.value)}: ${why}` }
    return true
  }

  get toml(): string {
    const lines = this.#lines.map((line) => ('note' in line ? comment(line.note) : `${line.name} = ${tomlValue(line.value)}`))
    const classes = [...this.classes].map(([name, list]) => `${name} = ${tomlValue(list)}`)
    const ofClasses = classes.length === 0 ? [] : ['', '[smtpd_restriction_classes]', ...classes]
    const transports = [...this.transports].map(([key, value]) => `${quoted(key)} = ${quoted(value)}`)
    const ofTransports =
      transports.length + this.#transportNotes.length === 0
        ? []
        : ['', '[transport_maps]', ...this.#transportNotes.map(comment), ...transports]
    const listeners = this.listeners.flatMap((one) => [
      '',
      '[[smtpd]]',
      ...[...Object.entries({ ...one, settings: undefined }), ...one.settings].flatMap(([name, value]) =>
        value === undefined ? [] : [`${name} = ${tomlValue(value)}`],
      ),
    ])
    const destinations = [...this.destinations].flatMap(([heading, settings]) => [
      '',
      `[destination.${quoted(heading)}]`,
      ...[...settings].map(([name, value]) => `${name} = ${tomlValue(value)}`),
    ])
    return `${[...lines, ...ofClasses, ...ofTransports, ...listeners, ...destinations].join('\n')}\n`
  }

  /** The values that a reader of deferd.toml would get. */
  get values(): Readonly<Record<string, unknown>> {
    return parse(this.toml)
  }
}

const show = (value: ParameterValue): string => (typeof value === 'string' ? value : value.join(', '))

/** A comment on one line. */
const comment = (text: string): string => `# ${text.replaceAll(/\s+/g, ' ')}`

const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f')

/** References are already expanded, so that a dollar sign stands for itself. */
const tomlValue = (value: ParameterValue): string =>
  typeof value === 'string' ? quoted(value.replaceAll('$', '$$$$')) : `[${value.map((one) => tomlValue(one)).join(', ')}]`

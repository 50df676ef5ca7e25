/**
 * Form of an entry of the tables of events: what a kind of event means, its record of `log_format = "json"`, and its lines of
 * `log_format = "postfix"`. The tables of kinds are published-kinds.ts (kinds that programs get) and telemetry/kinds.
 */
import type { ClientName } from '../mail/client-name.ts'
import { queueIdOf, type MessageSummary } from '../mail/message.ts'

/** Severity of a record of the log. */
export type Level = 'info' | 'warn' | 'error' | 'fatal'

/** A log line in Postfix's format. */
export interface LogLine {
  /** Name of the Postfix program: smtpd, pickup, cleanup, qmgr, smtp, lmtp, discard, error, bounce, postsuper, master. */
  readonly program: string
  readonly text: string
}

export interface LineOptions {
  /** smtp_log_tls_feature_status; default true. */
  readonly tlsStatus?: boolean | undefined
}

/** The value of each member of a record, in the order of the record. */
export type Members<E, Data = Readonly<Record<string, unknown>>> = { readonly [Name in keyof Data]: (event: E) => Data[Name] }

/** An entry about events `E`, which have one JSON record for each `Row`. */
export interface EventKind<E, Row = E> {
  readonly level: Level
  /** Meaning of the record, for docs/monitoring.md. */
  readonly about: string
  /** Members and events are a stable interface: they may be added, but are never removed or renamed. Times are in seconds. */
  readonly record: Members<Row>
  /** Level of an event whose level is not that of its kind. */
  readonly levelOf?: (event: E) => Level
  /** The parts of an event that have a record each; one record of the whole event unless given. */
  readonly rows?: (event: E) => readonly Row[]
  /** Postfix's lines, which tools for Postfix can read, or lines of the same style. */
  lines(event: E, options: LineOptions): readonly LogLine[]
}

/** A kind that is only logged and counted. */
export const logged = <E>(kind: EventKind<E>): EventKind<E> => kind

/** A kind with several records for an event. */
export const loggedEach = <E, Row>(kind: EventKind<E, Row> & Required<Pick<EventKind<E, Row>, 'rows'>>): EventKind<E, Row> => kind

/** A kind that only listeners get, such as the metrics, because each delivery or message causes one. */
export interface UnloggedKind<E> {
  readonly record: null
  lines(event: E): readonly LogLine[]
}

export const UNLOGGED: UnloggedKind<object> = { record: null, lines: () => [] }

/** Members that have the names and the values of members of the event. */
export const same = <Name extends string>(...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, (event: Readonly<Record<Name, unknown>>) => event[name]])) as {
    readonly [N in Name]: <E extends { readonly [M in N]: unknown }>(event: E) => E[N]
  }

/** Adds the members of a record about an event, or about a part of it, to `data`. */
export function recordOf<Row, Data>(record: Members<Row, Data>, row: Row, data: Partial<Data> = {}): Data {
  for (const name in record) data[name] = record[name](row)
  return data as Data
}

export const seconds = (millis: number): number => millis / 1000

/** Members of a record about a client. */
export const CLIENT = {
  client_name: ({ client }: { readonly client: ClientName | null }) => client?.name ?? null,
  client_address: ({ client }: { readonly client: ClientName | null }) => client?.address ?? null,
}

export const line = (program: string, text: string): readonly LogLine[] => [{ program, text }]

/** Names a client as Postfix does: `mail.example[192.0.2.1]`. */
export const clientText = ({ name, address }: ClientName): string => `${name}[${address}]`

/** A text that begins with the queue id of its message. */
export const about = (message: MessageSummary, text: string): string => `${queueIdOf(message)}: ${text}`

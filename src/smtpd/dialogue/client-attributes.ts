/**
 * Parses the attributes of XCLIENT and XFORWARD, `NAME=… ADDR=…`, with which an authorized client names another one (Postfix
 * XCLIENT_README and XFORWARD_README). Values are xtext (RFC 3461 §4). A command with one bad attribute is refused as a whole.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { canonicalAddress } from '../../config/values/networks.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import type { UpstreamMessage } from '../../mail/client-name.ts'
import type { Parsed } from './esmtp-parameters.ts'
import { UNKNOWN } from './peer-name.ts'
import { badParameter } from './replies.ts'

/** Properties of a client that XCLIENT replaces. A member is absent when the command does not name it. */
export interface ClientOverride {
  readonly name?: string
  /** `unknown` for [UNAVAILABLE]. */
  readonly address?: string
  /** Empty for [UNAVAILABLE]. */
  readonly helo?: string
  readonly isExtended?: boolean
  /** Name of the user whom the sender of the command has authenticated. */
  readonly login?: string
}

/** Properties of a message at the server in front of a filter, which XFORWARD gives for the log. */
export interface ForwardedAttributes {
  readonly name?: string
  /** `unknown` for [UNAVAILABLE]. */
  readonly address?: string
  /** True when a property of the client was given, so that the client is known or known to be unknown. */
  readonly describesClient?: boolean
  /** Queue id; empty for [UNAVAILABLE]. */
  readonly id?: string
  /** True for mail that began at that server (`SOURCE=LOCAL`). */
  readonly isLocal?: boolean
}

/** The message as that server describes it, for the log. */
export function upstreamOf({ name = UNKNOWN, address = UNKNOWN, describesClient = false, id = '' }: ForwardedAttributes): UpstreamMessage {
  return { client: describesClient ? { name, address } : undefined, queueId: id === '' ? undefined : id }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

interface Attribute<T> {
  /** True when characters with a meaning in a Received field are replaced before the value is read. */
  readonly isNeutered?: boolean
  /** Reads a value into `into`. Returns false when the value is invalid. */
  readonly read: (value: string, into: Writable<T>) => boolean
}

/** Attributes by name, in the order in which EHLO announces them. */
type AttributeTable<T> = Readonly<Record<string, Attribute<T>>>

const VALUE_LIMIT = 255

/** Characters with a meaning in a Received field. They are replaced, so that a client cannot forge trace information (Postfix smtpd). */
const TRACE_SYNTAX = /[ <>()\\";@]/g

export const neutered = (text: string): string => text.replace(TRACE_SYNTAX, '?')

/** Decodes xtext. A value that is no xtext stays as it is, because old clients send plain text. */
function decoded(value: string): string {
  if (/\+(?![0-9A-F]{2})/i.test(value)) return maskControls(value)
  const octets = value
    .split(/(\+[0-9A-F]{2})/i)
    .map((part) => (part.startsWith('+') ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part)))
  return maskControls(Buffer.concat(octets).toString('utf8'))
}

/** Reads `NAME=value` pairs between blanks with a table. `command` names the command in the refusal of an unknown attribute. */
function parseAttributes<T extends object>(command: string, text: string, table: AttributeTable<T>): Parsed<Partial<T>> {
  const into: Partial<Writable<T>> = {}
  const pairs = text.split(/\s+/).filter((pair) => pair !== '')
  for (const pair of pairs) {
    const why = readPair(command, pair, table, into as Writable<T>)
    if (why !== undefined) return { refusal: badParameter(why) }
  }
  return { value: into }
}

/** Returns the text of the refusal, and undefined for a valid pair. */
function readPair<T>(command: string, pair: string, table: AttributeTable<T>, into: Writable<T>): string | undefined {
  const [, name = '', raw = ''] = /^([^=]*)=(.*)$/s.exec(pair) ?? []
  if (raw === '') return 'Error: attribute=value expected'
  if (Buffer.byteLength(raw) > VALUE_LIMIT) return 'Error: attribute value too long'
  const key = name.toUpperCase()
  const attribute = Object.hasOwn(table, key) ? table[key] : undefined
  if (attribute === undefined) return `Bad ${command} attribute name: ${maskControls(name).slice(0, VALUE_LIMIT)}`
  const value = attribute.isNeutered === true ? neutered(decoded(raw)) : decoded(raw)
  return attribute.read(value, into) ? undefined : `Bad ${key} syntax: ${value}`
}

const isUnavailable = (value: string): boolean => value.toUpperCase() === '[UNAVAILABLE]'
const isTemporary = (value: string): boolean => value.toUpperCase() === '[TEMPUNAVAIL]'

/** True for a host name that may appear in log lines and trace fields (RFC 1123 §2.1, with underscores). */
function isHostName(text: string): boolean {
  const labels = text.split('.')
  return text.length <= 255 && !/^[\d.]*$/.test(text) && labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label))
}

/** Returns the address in a text such as `192.0.2.1` or `IPV6:2001:db8::1`; undefined for any other text. */
function mailHostAddress(text: string): string | undefined {
  const ipv6 = /^IPV6:(.*)$/i.exec(text)?.[1]
  if (ipv6 !== undefined) return isIPv6(ipv6) && !ipv6.includes('%') ? canonicalAddress(ipv6) : undefined
  // 0.0.0.0 is an address; others that begin with 0 are not.
  return isIPv4(text) && (!text.startsWith('0.') || text === '0.0.0.0') ? text : undefined
}

const readName = (value: string, into: { name?: string }): boolean => {
  const isKnown = !isUnavailable(value) && !isTemporary(value)
  into.name = isKnown ? value : UNKNOWN
  return !isKnown || isHostName(value)
}

const readAddress = (value: string, into: { address?: string }): boolean => {
  const address = isUnavailable(value) ? UNKNOWN : mailHostAddress(value)
  if (address !== undefined) into.address = address
  return address !== undefined
}

/** True for a valid port; nothing depends on its value. */
const isPort = (value: string): boolean => isUnavailable(value) || /^\d{1,5}$/.test(value)

const readHelo = (value: string, into: { helo?: string }): boolean => {
  into.helo = isUnavailable(value) ? '' : neutered(value)
  return true
}

const XCLIENT: AttributeTable<ClientOverride> = {
  NAME: { read: readName },
  ADDR: { isNeutered: true, read: readAddress },
  PROTO: {
    read: (value, into) => {
      into.isExtended = value.toUpperCase() === 'ESMTP'
      return /^E?SMTP$/i.test(value)
    },
  },
  HELO: { read: readHelo },
  // The name of the address without its verification, which no rule of deferd looks at.
  REVERSE_NAME: { read: (value) => readName(value, {}) },
  PORT: { read: isPort },
  LOGIN: {
    read: (value, into) => {
      if (!isUnavailable(value)) into.login = value
      return true
    },
  },
  DESTADDR: { isNeutered: true, read: (value) => readAddress(value, {}) },
  DESTPORT: { read: isPort },
}

/** The line of EHLO that announces XCLIENT. */
export const XCLIENT_KEYWORD = ['XCLIENT', ...Object.keys(XCLIENT)].join(' ')

export const parseXclient = (text: string): Parsed<ClientOverride> => parseAttributes('XCLIENT', text, XCLIENT)

/** Adds to a reader that its attribute describes the client. */
const ofClient = ({ isNeutered = false, read }: Attribute<ForwardedAttributes>): Attribute<ForwardedAttributes> => ({
  isNeutered,
  read: (value, into) => {
    into.describesClient = true
    return read(value, into)
  },
})

/** Maximum octets of the protocol. */
const PROTOCOL_LIMIT = 64

const XFORWARD: AttributeTable<ForwardedAttributes> = {
  NAME: ofClient({ isNeutered: true, read: (value, into) => !isTemporary(value) && readName(value, into) }),
  ADDR: ofClient({ isNeutered: true, read: readAddress }),
  PROTO: ofClient({ read: (value) => value.length <= PROTOCOL_LIMIT }),
  HELO: ofClient({ read: () => true }),
  SOURCE: {
    read: (value, into) => {
      into.isLocal = !/^REMOTE$/i.test(value)
      return isUnavailable(value) || /^(?:LOCAL|REMOTE)$/i.test(value)
    },
  },
  PORT: ofClient({ read: isPort }),
  IDENT: {
    isNeutered: true,
    read: (value, into) => {
      into.id = isUnavailable(value) ? '' : value
      return true
    },
  },
}

/** The line of EHLO that announces XFORWARD. */
export const XFORWARD_KEYWORD = ['XFORWARD', ...Object.keys(XFORWARD)].join(' ')

export const parseXforward = (text: string): Parsed<ForwardedAttributes> => parseAttributes('XFORWARD', text, XFORWARD)

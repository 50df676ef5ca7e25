/** The listeners of the SMTP server: addresses, parameters that differ by listener, and certificates. */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorMessage } from '../system/caught-error.ts'
import { isOption, NAMES, unknownParameter, type Expansion } from './expansion.ts'
import { OPTIONS, type Config, type Listener, type OptionName } from './options.ts'
import { ConfigError, type Problem } from './values/problem.ts'
import type { RawValue } from './values/sources.ts'
import * as is from './values/values.ts'

interface KeyPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** One certificate with its key, or the chains of several keys. */
export type Certificate = KeyPair | { readonly cert: string[]; readonly key: string[] }

type CertificateSettings = Pick<Config, 'smtpd_tls_cert_file' | 'smtpd_tls_key_file' | 'smtpd_tls_chain_files'>

/** Keys of a `[[smtpd]]` table that are no parameters. Those of STANDS_FOR stand for a parameter, and have more values. */
const KEYS = {
  address: is.text,
  tls: is.oneOf('none', 'may', 'encrypt', 'wrapper'),
  auth: is.oneOf('none', 'may', 'required'),
  upstream_proxy_protocol: is.proxyProtocol,
  class: is.text,
} as const
const STANDS_FOR = {
  tls: 'smtpd_tls_security_level',
  auth: 'smtpd_sasl_auth_enable',
  upstream_proxy_protocol: 'smtpd_upstream_proxy_protocol',
} as const

const isKey = (name: string): name is keyof typeof KEYS => Object.hasOwn(KEYS, name)
const mayDiffer = (name: string): name is OptionName => isOption(name) && 'perListener' in OPTIONS[name]

/** The keys of a `[[smtpd]]` table, with `$name` expanded. */
type ListenerTable = ReadonlyMap<string, RawValue>

/** `given` has the positions of the tables. */
export const listenerTables = (
  tables: readonly Readonly<Record<string, unknown>>[],
  given: RawValue | undefined,
  expansion: Expansion,
): readonly ListenerTable[] =>
  tables.map((table, n) => {
    const keys = Object.entries(table).map(([key, value]) => {
      const where = given?.inside?.(String(n), key) ?? given?.where ?? ''
      return [key, { where, value: expansion.expand({ value, where }) }] as const
    })
    return new Map(keys)
  })

/** Reads the tables. Adds the problems to `problems`. */
export const readListeners = (tables: readonly ListenerTable[], given: RawValue | undefined, problems: Problem[]): readonly Listener[] =>
  tables.map((table, n) => readListener(table, given?.inside?.(String(n)) ?? given?.where ?? '', problems))

function readListener(table: ListenerTable, whereOfTable: string, problems: Problem[]): Listener {
  const read: Record<string, unknown> = {}
  for (const [name, { value, where }] of table) {
    const kind: is.Kind<unknown> | undefined = isKey(name) ? KEYS[name] : mayDiffer(name) ? OPTIONS[name].kind : undefined
    const reading = kind?.(value) ?? { wrong: '' }
    if (kind === undefined) problems.push({ where, text: unfit(name) })
    else if ('wrong' in reading) problems.push({ where, text: `[[smtpd]] ${name}: ${reading.wrong}` })
    else read[name] = reading.value
  }
  if (!table.has('address')) problems.push({ where: whereOfTable, text: '[[smtpd]]: has no address; write address = "HOST:PORT"' })
  for (const [key, name] of Object.entries(STANDS_FOR)) {
    const where = table.has(key) ? table.get(name)?.where : undefined
    if (where !== undefined) problems.push({ where, text: `[[smtpd]] ${name}: is what ${key} sets here; write one of them` })
  }
  const {
    address = '',
    tls,
    auth,
    upstream_proxy_protocol: proxy,
    class: ofClass = '',
    ...settings
  } = read as Partial<Listener> & Listener['settings']
  const {
    smtpd_tls_security_level: level = 'none',
    smtpd_sasl_auth_enable: mayLogIn,
    smtpd_upstream_proxy_protocol: proxied = '',
    smtpd_tls_cert_file: certificate,
  } = settings
  return {
    address,
    tls: tls ?? level,
    auth: auth ?? (mayLogIn === true ? 'may' : 'none'),
    upstream_proxy_protocol: proxy ?? proxied,
    class: ofClass,
    // As at the relay, the key is in the file of the certificate unless it is named.
    settings: certificate === undefined ? settings : { smtpd_tls_key_file: certificate, smtpd_tls_chain_files: [], ...settings },
    positions: Object.fromEntries([...table].map(([name, { where }]) => [name, where])),
  }
}

function unfit(name: string): string {
  if (isOption(name)) return `${name} is a parameter of the whole relay, not of [[smtpd]]; set it above the tables`
  return unknownParameter(name, [...Object.keys(KEYS), ...NAMES.filter(mayDiffer)])
}

/** Returns the listeners of smtpd_listen, which have no parameters of their own, and those of the `[[smtpd]]` tables. */
export function listenersOf(
  config: Pick<Config, 'smtpd_listen' | 'smtpd_tls_security_level' | 'smtpd_sasl_auth_enable' | 'smtpd_upstream_proxy_protocol' | 'smtpd'>,
): readonly Listener[] {
  const tls = config.smtpd_tls_security_level
  const auth = config.smtpd_sasl_auth_enable ? 'may' : 'none'
  const { smtpd_upstream_proxy_protocol: upstream_proxy_protocol } = config
  const shared = { tls, auth, upstream_proxy_protocol, class: '', settings: {}, positions: {} } as const
  return [...config.smtpd_listen.map((address) => ({ address, ...shared })), ...config.smtpd]
}

/**
 * Reads the file of a parameter of a listener. An error whose message begins with a parameter of its table is thrown as ConfigError, with the
 * position of that parameter.
 */
export function atListener<T>({ settings, positions }: Listener, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const text = errorMessage(cause)
    const [name = ''] = /^\w+(?=: )/.exec(text) ?? []
    if (!Object.hasOwn(settings, name)) throw cause
    throw new ConfigError([{ where: positions[name] ?? positions['address'] ?? '', text: `[[smtpd]] ${text}` }])
  }
}

/** The certificate of the listeners cannot be used (78, EX_CONFIG). */
export class CertificateUnusable extends Error {
  override readonly name = 'CertificateUnusable'
  readonly exitCode = 78
}

/** Reads and validates the certificate of a listener; null for one without TLS. Throws CertificateUnusable or ConfigError. */
export function readCertificate(config: CertificateSettings, listener: Listener): Certificate | null {
  if (listener.tls === 'none') return null
  const {
    smtpd_tls_chain_files: chains,
    smtpd_tls_cert_file: certFile,
    smtpd_tls_key_file: keyFile,
  }: CertificateSettings = { ...config, ...listener.settings }
  return atListener(listener, () => {
    if (chains.length > 0) return readChains(chains)
    if (certFile === '') throw new CertificateUnusable('smtpd_tls_cert_file: a listener offers TLS, but there is no certificate')
    return readKeyPair('smtpd_tls', certFile, keyFile)
  })
}

/**
 * Reads and validates smtpd_tls_chain_files: keys, each followed by its certificate and those of its authorities, in one file or several.
 * Throws CertificateUnusable.
 */
function readChains(paths: readonly string[]): Certificate {
  const text = paths.map((path) => readPem(path, 'smtpd_tls_chain_files').toString('latin1')).join('\n')
  const blocks = text.match(/-----BEGIN ([^-]+)-----[^]*?-----END \1-----/g) ?? []
  const chains: { readonly key: string; cert: string }[] = []
  for (const block of blocks) {
    const chain = chains.at(-1)
    if (/^-----BEGIN [^-]*PRIVATE KEY/.test(block)) chains.push({ key: block, cert: '' })
    else if (chain !== undefined && block.startsWith('-----BEGIN CERTIFICATE')) chain.cert += `${block}\n`
    else if (chain === undefined)
      throw new CertificateUnusable(`smtpd_tls_chain_files: ${paths.join(', ')}: a certificate is before its key; name the key first`)
  }
  const certificate = { cert: chains.map(({ cert }) => cert), key: chains.map(({ key }) => key) }
  try {
    if (chains.length === 0 || certificate.cert.includes('')) throw new Error('a key, or its certificate, is missing')
    createSecureContext(certificate)
  } catch (cause) {
    throw new CertificateUnusable(`smtpd_tls_chain_files: ${paths.join(', ')}: ${errorMessage(cause)}`, { cause })
  }
  return certificate
}

/** Reads and validates a certificate and its key. `prefix` begins the names of the two parameters. Throws CertificateUnusable. */
export function readKeyPair(prefix: 'smtpd_tls' | 'admin_tls', certFile: string, keyFile: string): KeyPair {
  const certificate = { cert: readPem(certFile, `${prefix}_cert_file`), key: readPem(keyFile, `${prefix}_key_file`) }
  try {
    createSecureContext(certificate)
  } catch (cause) {
    throw new CertificateUnusable(
      `${prefix}_cert_file: ${certFile} and ${keyFile} are no certificate and its key: ${errorMessage(cause)}`,
      {
        cause,
      },
    )
  }
  return certificate
}

function readPem(path: string, parameter: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new CertificateUnusable(`${parameter}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

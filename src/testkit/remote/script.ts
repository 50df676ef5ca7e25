/**
 * Reads a script: `[rule.NAME]` tables, of which the first matching one is applied, `[dns."NAME"]` tables with DNS records,
 * `[tls."HOST"]` tables with certificates, `[mta-sts."DOMAIN"]` tables with policies, and `[authority.NAME]` tables with failures of
 * authorization servers. A table `[record]` has no effect.
 * Every mistake is reported with file, line and the valid values.
 */
import { parse, TomlDate, TomlError } from 'smol-toml'
import { keyLines, keyPath } from '../../config/values/key-lines.ts'
import { ConfigError, nearest, type Problem } from '../../config/values/problem.ts'
import { readAuthorityRule, type AuthorityRule } from '../oauth/authority-rule.ts'
import { readRule } from './rule-reader.ts'
import type { Rule, Script, Zone } from './rule.ts'
import { readCertificate, readPolicy } from './server-tables.ts'
import { tlsaRecord } from './world-certificates.ts'

const TABLE_NAMES = ['rule', 'dns', 'tls', 'mta-sts', 'authority', 'record']
const RECORDS = ['mx', 'a', 'aaaa', 'txt', 'tlsa', 'dnssec']

export type Table = Readonly<Record<string, unknown>>

export const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof TomlDate)

/** Records a mistake at a path of keys. */
export type Complain = (path: readonly string[], text: string) => void

/** Reads the script in `text`; `file` is its name in error messages. Throws a ConfigError with all mistakes. */
export function readScript(text: string, file: string): Script {
  const tables = readToml(text, file)
  const { complain, problems } = complaints(text, file)
  const script = readTables(tables, complain)
  for (const name of Object.keys(tables)) {
    if (!TABLE_NAMES.includes(name))
      complain(
        [name],
        unknown(name, TABLE_NAMES, 'a script has [rule.NAME], [dns."NAME"], [tls."HOST"], [mta-sts."DOMAIN"] and [authority.NAME] tables'),
      )
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return script
}

/** Reads the tables of TABLE_NAMES in a file. */
export function readTables(tables: Table, complain: Complain): Script {
  const table = (name: string): Table => {
    const value = tables[name] ?? {}
    if (isTable(value)) return value
    complain([name], `${name} must be a table: [${name}.NAME]`)
    return {}
  }
  // The facts about a recording are for people, and have no effect.
  table('record')
  const rules = [...readRules(table('rule'), complain)]
  const zones = Object.entries(table('dns')).map(([domain, zone]) => [domain.toLowerCase(), readZone(domain, zone, complain)] as const)
  const authority = [...readAuthorityRules(table('authority'), complain)]
  const certificates = new Map(named('tls', table('tls'), readCertificate, complain))
  const policies = new Map(named('mta-sts', table('mta-sts'), readPolicy, complain))
  return { rules, authority, zones: new Map(zones), certificates, policies }
}

/** Collects the mistakes of a file, each with its line. */
export function complaints(text: string, file: string) {
  const lines = keyLines(text)
  const problems: Problem[] = []
  const where = (path: readonly string[]): string => `${file}:${lineOf(lines, path)}`
  const complain: Complain = (path, words) => void problems.push({ where: where(path), text: words })
  return { complain, where, problems: problems as readonly Problem[] }
}

/** Parses TOML. Throws a ConfigError with the line of the syntax error. */
export function readToml(text: string, file: string): Table {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause
    const [reason] = cause.message.split('\n')
    throw new ConfigError([{ where: `${file}:${cause.line}`, text: reason ?? 'is not TOML' }])
  }
}

/** Line number of a key. A key of an inline table has the line of the table. A table without a heading has the line of its first key. */
function lineOf(lines: ReadonlyMap<string, number>, path: readonly string[]): number {
  for (let length = path.length; length > 0; length--) {
    const here = keyPath(...path.slice(0, length))
    const line = lines.get(here) ?? lines.get([...lines.keys()].find((key) => key.startsWith(`${here.slice(0, -1)},`)) ?? '')
    if (line !== undefined) return line
  }
  return 1
}

/** Error text for an unknown name: suggests the most similar known name, else `otherwise`. */
export function unknown(name: string, known: readonly string[], otherwise: string): string {
  const meant = nearest(name, known)
  return `unknown key ${name}; ${meant === undefined ? otherwise : `did you mean ${meant}?`}`
}

function* readRules(tables: Table, complain: Complain): Generator<Rule> {
  for (const [name, table] of Object.entries(tables)) {
    if (!isTable(table)) {
      complain(['rule', name], `${name} is not a rule: rules are tables with a name of their own, such as [rule.${name}-1]`)
      continue
    }
    // JavaScript moves integer keys to the front of an object, which would change the order of the rules.
    if (/^\d+$/.test(name)) complain(['rule', name], `rule ${name}: a name needs a letter`)
    const read = readRule(name, table)
    if ('rule' in read) yield read.rule
    else for (const { key, text } of read.mistakes) complain(key === null ? ['rule', name] : ['rule', name, key], `rule ${name}: ${text}`)
  }
}

function* readAuthorityRules(tables: Table, complain: Complain): Generator<AuthorityRule> {
  for (const [name, table] of Object.entries(tables)) {
    const path = ['authority', name]
    const wrong = (key: string | null, text: string): void =>
      complain(key === null ? path : [...path, key], `authority rule ${name}: ${text}`)
    if (!isTable(table)) {
      wrong(null, `write a table with a name of its own, such as [authority.${name}-1]`)
      continue
    }
    if (/^\d+$/.test(name)) wrong(null, 'a name needs a letter')
    const rule = readAuthorityRule(name, table, wrong)
    if (rule !== null) yield rule
  }
}

/** Reads the tables below `[of."NAME"]`. */
function* named<T>(
  of: string,
  tables: Table,
  read: (table: Table, wrong: (key: string | null, text: string) => void) => T | null,
  complain: Complain,
): Generator<readonly [string, T]> {
  for (const [name, table] of Object.entries(tables)) {
    const wrong = (key: string | null, text: string): void =>
      complain(key === null ? [of, name] : [of, name, key], `${of}.${name}: ${text}`)
    const value = isTable(table) ? read(table, wrong) : null
    if (!isTable(table)) wrong(null, `write a table: [${of}."${name}"]`)
    if (value !== null) yield [name.toLowerCase(), value]
  }
}

function readZone(domain: string, table: unknown, complain: Complain): Zone {
  const zone = isTable(table) ? table : {}
  if (!isTable(table)) complain(['dns', domain], `dns.${domain} must be a table: [dns."${domain}"]`)
  for (const name of Object.keys(zone)) {
    if (!RECORDS.includes(name)) complain(['dns', domain, name], unknown(name, RECORDS, `a domain has ${RECORDS.join(', ')}`))
  }
  const texts = (name: string): readonly string[] => {
    const value = zone[name] ?? []
    if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value
    complain(['dns', domain, name], `${name}: expected a list of texts, got ${JSON.stringify(value)}`)
    return []
  }
  const txt = texts('txt')
  const tlsa = readTlsa(domain, texts('tlsa'), complain)
  const { dnssec } = zone
  if (dnssec !== undefined && typeof dnssec !== 'boolean')
    complain(['dns', domain, 'dnssec'], `dnssec: expected true or false, got ${JSON.stringify(dnssec)}`)
  return {
    mx: readMx(domain, texts('mx'), complain),
    a: texts('a'),
    aaaa: texts('aaaa'),
    ...(txt.length === 0 ? {} : { txt }),
    ...(tlsa.length === 0 ? {} : { tlsa }),
    ...(typeof dnssec === 'boolean' ? { secure: dnssec } : {}),
  }
}

/** Reads the TLSA records at a name such as `_25._tcp.mx1.example.net`. */
function readTlsa(name: string, texts: readonly string[], complain: Complain): NonNullable<Zone['tlsa']> {
  const wrong = (text: string): void => complain(['dns', name, 'tlsa'], `tlsa: ${text}`)
  const [, host = ''] = /^_\d+\._tcp\.(.+)$/.exec(name.toLowerCase()) ?? []
  if (host === '' && texts.length > 0) wrong(`the records belong to the name of a host and port: [dns."_25._tcp.${name}"]`)
  return texts.flatMap((text) => {
    const record = tlsaRecord(text, host)
    if (record !== undefined) return [record]
    wrong(`expected usage, selector, matching type and octets such as "3 1 1 d2ab…", or "3 1 1" alone, got ${JSON.stringify(text)}`)
    return []
  })
}

function readMx(domain: string, texts: readonly string[], complain: Complain): Zone['mx'] {
  return texts.flatMap((text) => {
    const match = /^(\d+)\s+(\S+?)\.?$/.exec(text) ?? /^(\d+)\s+(\.)$/.exec(text)
    if (match !== null) return [{ preference: Number(match[1]), exchange: match[2] === '.' ? '' : (match[2] ?? '').toLowerCase() }]
    complain(['dns', domain, 'mx'], `mx: expected a preference and a host such as "10 mx1.${domain}", got ${JSON.stringify(text)}`)
    return []
  })
}

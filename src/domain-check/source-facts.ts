/** Gathers what receivers see of this relay: its addresses, their names (PTR), and the addresses of the name in EHLO. */
import { isIPv6 } from 'node:net'
import type { Config } from '../config/options.ts'
import { isPublicAddress } from '../system/public-address.ts'
import type { Lookup, Net } from '../system/net.ts'

/** One of our addresses as receivers see it. */
export interface SourceFacts {
  readonly address: string
  readonly names: Lookup<string>
  /** Names whose addresses include this one. */
  readonly confirmed: readonly string[]
  /** Names whose addresses could not be looked up for now. */
  readonly unknown: readonly string[]
}

export interface OurFacts {
  /** Name in EHLO (smtp_helo_name). */
  readonly helo: string
  /** Addresses of that name, of both families. */
  readonly heloAddresses: Lookup<string>
  readonly sources: readonly SourceFacts[]
  /** Private addresses from which connections were made, whose public ones are not known. */
  readonly hidden: readonly string[]
}

/** Addresses as receivers see them: those of connections, and proxy_interfaces in place of private ones. Pure. */
export function publicSources(
  local: readonly string[],
  proxies: readonly string[],
): { readonly sources: readonly string[]; readonly hidden: readonly string[] } {
  const sources = new Set<string>()
  const hidden: string[] = []
  for (const address of local.map((one) => one.replace(/^::ffff:(?=\d+\.)/, ''))) {
    const outside = proxies.filter((proxy) => isPublicAddress(proxy) && isIPv6(proxy) === isIPv6(address))
    if (isPublicAddress(address)) sources.add(address)
    else if (outside.length === 0) hidden.push(address)
    else for (const one of outside) sources.add(one)
  }
  return { sources: [...sources], hidden }
}

/** Most names of an address that are looked up (RFC 7208 §5.5 has the same limit). */
const MOST_NAMES = 10

export async function gatherSources(local: readonly string[], config: Config, net: Net): Promise<OurFacts> {
  const { sources, hidden } = publicSources(local, config.proxy_interfaces)
  const helo = config.smtp_helo_name
  const [heloAddresses, ...facts] = await Promise.all([addressesOf(helo, net), ...sources.map((address) => sourceFacts(address, net))])
  return { helo, heloAddresses, sources: facts, hidden }
}

async function sourceFacts(address: string, net: Net): Promise<SourceFacts> {
  const names = await net.lookupNames(address)
  const asked = names.kind === 'found' ? names.records.slice(0, MOST_NAMES) : []
  const answers = await Promise.all(asked.map(async (name) => ({ name, found: await addressesOf(name, net) })))
  return {
    address,
    names,
    confirmed: answers.flatMap(({ name, found }) => (found.kind === 'found' && found.records.includes(address) ? [name] : [])),
    unknown: answers.flatMap(({ name, found }) => (found.kind === 'failed' ? [name] : [])),
  }
}

async function addressesOf(name: string, net: Net): Promise<Lookup<string>> {
  const answers = await Promise.all([net.lookupAddresses(name, 4), net.lookupAddresses(name, 6)])
  const records = answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
  if (records.length > 0) return { kind: 'found', records }
  return answers.find(({ kind }) => kind === 'failed') ?? answers[0]
}

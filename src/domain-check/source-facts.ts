/** Gathers what receivers see of this relay: its addresses, their names (PTR), and the addresses of the name in EHLO. */
import { isIPv6 } from 'node:net'
import type { Config } from '../config/options.ts'
import { isPublicAddress } from '../system/public-address.ts'
import type { Lookup, Net } from '../system/net.ts'

/** One of our addresses as receivers see it. */
export interface SourceFacts {
  readonly address: string
  readonly names: Lookup<string>
  /** Names of the address that resolve to the address. */
  readonly confirmed: readonly string[]
  /** Names whose look-up failed temporarily. */
  readonly unknown: readonly string[]
}

export interface OurFacts {
  /** Name in EHLO (smtp_helo_name). */
  readonly helo: string
  /** Addresses of `helo`, of both families. */
  readonly heloAddresses: Lookup<string>
  readonly sources: readonly SourceFacts[]
  /** Private addresses of connections, whose public addresses are unknown. */
  readonly hidden: readonly string[]
}

/** Addresses as receivers see them: the local addresses of connections, with proxy_interfaces in place of private ones. Pure. */
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

/** Names of one address to look up (RFC 7208 §5.5 has the same limit). */
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

/**
 * Whether values mean something to the parts that use them: addresses to listen on, networks, next hops, transports.
 * Each is tried with the very parser that reads it later, so that nothing is found out half-way through a start.
 */
import { Router, parseTransport } from '../delivery/route.ts'
import { parseListen } from './endpoints.ts'
import { Networks } from './networks.ts'
import type { Config, OptionName } from './options.ts'
import type { Problem } from './problem.ts'

/** Where something was given. */
export interface Places {
  readonly parameter: (name: OptionName) => string | undefined
  readonly transport: (key: string) => string
}

/** One value with what reads it. */
interface Trial {
  readonly where: string
  readonly read: () => unknown
}

export function meaninglessValues(config: Config, places: Places): readonly Problem[] {
  return trials(config, places).flatMap(({ where, read }) => {
    try {
      read()
      return []
    } catch (error) {
      return [{ where, text: (error as Error).message }]
    }
  })
}

/** Values that nobody gave are defaults, and those are right. */
function trials(config: Config, { parameter, transport }: Places): readonly Trial[] {
  const nowhere = new Map<string, string>()
  const nextHops = (hops: Partial<Config>) => () =>
    new Router({ ...config, relayhost: [], smtp_fallback_relay: [], transport_maps: nowhere, ...hops })
  const readers: Partial<Record<OptionName, () => unknown>> = {
    smtpd_listen: () => config.smtpd_listen.map((text) => parseListen(text, 'smtpd_listen')),
    smtpd: () => config.smtpd.map(({ address }) => parseListen(address, 'smtpd')),
    http_listen: () => config.http_listen === '' || parseListen(config.http_listen, 'http_listen'),
    mynetworks: () => new Networks(config.mynetworks, 'mynetworks'),
    smtpd_forbid_bare_newline_exclusions: () =>
      new Networks(config.smtpd_forbid_bare_newline_exclusions, 'smtpd_forbid_bare_newline_exclusions'),
    smtpd_client_event_limit_exceptions: () =>
      new Networks(config.smtpd_client_event_limit_exceptions, 'smtpd_client_event_limit_exceptions'),
    relayhost: nextHops({ relayhost: config.relayhost }),
    smtp_fallback_relay: nextHops({ smtp_fallback_relay: config.smtp_fallback_relay }),
  }
  const given = Object.entries(readers).flatMap(([name, read]) => {
    const where = parameter(name as OptionName)
    return where === undefined ? [] : [{ where, read }]
  })
  const maps = [...config.transport_maps].map(([key, text]) => ({ where: transport(key), read: () => parseTransport(text, config) }))
  return [...given, ...maps]
}

/** Targets of the webhooks of a lab: applications on loopback, and those that --allow-webhook names. No other connection is made. */
import { BlockList, isIP } from 'node:net'
import { Problem } from '../http/problem-details.ts'
import { WebPoster } from '../subscriptions/web-poster.ts'
import { SECOND, type Duration, type Timers } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import { VERSION } from '../system/version.ts'
import { hostOf } from '../system/web-connection.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'

/** Limit in real time of the answer to a request. */
const ANSWER_LIMIT: Duration = 10 * SECOND

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** True for an address of this machine that no other machine reaches. */
const isLoopback = (address: string): boolean => loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

interface WebhookTargetsDeps {
  readonly net: Pick<Net, 'dial' | 'lookupAddresses' | 'lookupHost'>
  readonly clock: Timers
  /** `HOST:PORT` of the targets beyond loopback. */
  readonly allowed: ReadonlySet<string>
}

export class WebhookTargets {
  readonly #deps: WebhookTargetsDeps

  constructor(deps: WebhookTargetsDeps) {
    this.#deps = deps
  }

  /** Resolves with a poster to the application. Rejects with Problem for a URL that leads elsewhere, before a connection is made. */
  async posterTo(url: URL): Promise<WebPoster> {
    const { net, clock, allowed } = this.#deps
    const place = placeOf(url)
    const isNamed = allowed.has(place)
    const limits = { clock, version: VERSION, limit: ANSWER_LIMIT, keepsConnections: false }
    if (isNamed) return new WebPoster({ ...limits, net })
    const addresses = await this.#addressesOf(hostOf(url))
    const other = addresses.find((address) => !isLoopback(address))
    if (addresses.length === 0 || other !== undefined) {
      const why =
        other === undefined
          ? 'has no address and is'
          : other === hostOf(url)
            ? 'is not loopback and'
            : `leads to ${other}, which is not loopback, and is`
      throw new Problem(LAB_PROBLEMS.targetNotAllowed, `${place} ${why} not named by --allow-webhook`)
    }
    // A name may have another address at the next look-up.
    const dial: Net['dial'] = (options) =>
      isLoopback(options.address) ? net.dial(options) : Promise.reject(new Error(`${options.address} is not loopback`))
    const { lookupAddresses, lookupHost } = net
    return new WebPoster({ ...limits, net: { dial, lookupAddresses: lookupAddresses.bind(net), lookupHost: lookupHost.bind(net) } })
  }

  async #addressesOf(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host]
    const found = await this.#deps.net.lookupHost(host)
    return found.kind === 'found' ? found.records : []
  }
}

/** Host and port, as --allow-webhook has them. */
const placeOf = ({ protocol, hostname, port }: URL): string => `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`

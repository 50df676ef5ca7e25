/**
 * The Net port of the daemon: TCP and Unix sockets of node:net, DNS through the resolvers of this machine. Errors come
 * out as the system reports them.
 */
import { promises as dns } from 'node:dns'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { DialOptions, Endpoint, Listener, Lookup, MxRecord, Net } from '../delivery/net.ts'

/** Codes of c-ares that mean: ask again later. Everything unknown counts as one of them. */
const HARD: ReadonlySet<string> = new Set(['EREFUSED', 'EFORMERR', 'ENOTIMP', 'EBADNAME', 'EBADQUERY'])

export class SystemNet implements Net {
  readonly #resolver: dns.Resolver

  /** `dnsServers`: `address` or `address:port`; those of the system when absent. */
  constructor({ dnsServers }: { readonly dnsServers?: readonly string[] | undefined } = {}) {
    this.#resolver = new dns.Resolver()
    if (dnsServers !== undefined) this.#resolver.setServers([...dnsServers])
  }

  dial({ address, port, localAddress, timeout }: DialOptions): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = address.startsWith('/')
        ? connect({ path: address })
        : connect({ host: address, port, noDelay: true, ...(localAddress === undefined ? {} : { localAddress }) })
      const timer = setTimeout(() => {
        socket.destroy()
        reject(Object.assign(new Error(`connect ETIMEDOUT ${address}:${port}`), { code: 'ETIMEDOUT' }))
      }, timeout)
      socket.once('connect', () => {
        clearTimeout(timer)
        socket.off('error', reject)
        resolve(socket)
      })
      socket.once('error', reject)
      socket.once('error', () => clearTimeout(timer))
    })
  }

  lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    return ask(async () => (await this.#resolver.resolveMx(domain)).map(({ priority, exchange }) => ({ preference: priority, exchange })))
  }

  async lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    // Never asked of the network (RFC 6761 §6.3).
    if (host === 'localhost' || host.endsWith('.localhost')) return { kind: 'found', records: [family === 4 ? '127.0.0.1' : '::1'] }
    return ask(() => (family === 4 ? this.#resolver.resolve4(host) : this.#resolver.resolve6(host)))
  }

  lookupNames(address: string): Promise<Lookup<string>> {
    return ask(() => this.#resolver.reverse(address))
  }

  ownAddresses(): readonly string[] {
    return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address))
  }

  listen({ address, port }: Endpoint, accept: (socket: Socket) => void): Promise<Listener> {
    return new Promise((resolve, reject) => {
      const server = createServer({ noDelay: true }, accept)
      server.once('error', reject)
      server.listen({ host: address, port }, () => {
        server.off('error', reject)
        // Errors of an open listener concern single connections (EMFILE); accepting goes on by itself.
        server.on('error', () => {})
        const at = server.address() as AddressInfo
        resolve({
          address: at.address,
          port: at.port,
          close: async () => {
            // Not waited for: that would be until the last connection has ended.
            server.close()
          },
        })
      })
    })
  }
}

async function ask<T>(question: () => Promise<readonly T[]>): Promise<Lookup<T>> {
  try {
    const records = await question()
    return records.length > 0 ? { kind: 'found', records } : { kind: 'none', nxdomain: false }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
    if (code === 'ENOTFOUND' || code === 'ENODATA') return { kind: 'none', nxdomain: code === 'ENOTFOUND' }
    return { kind: 'failed', soft: !HARD.has(code), reason: code }
  }
}

export const systemNet: Net = new SystemNet()

/**
 * The Net port of the daemon: TCP and Unix sockets of node:net, and DNS through the resolvers of this machine. `dial` and
 * `listen` reject with the system's errors; a failed lookup is a value.
 */
import { promises as dns } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { DnsClient } from './dns/dns-client.ts'
import { namesInHosts } from './dns/hosts-file.ts'
import type { DialOptions, Listener, ListenOptions, Lookup, MxRecord, Net, SecureLookup, SecureRecords } from './net.ts'
import { secureLookup } from './secure-answer.ts'

/** The only permanent failures: of DNS, where REFUSED and NOTIMP may be temporary too, and of getaddrinfo(3). */
const PERMANENT: ReadonlySet<string> = new Set(['EBADNAME', 'EAI_FAIL'])

export class SystemNet implements Net {
  readonly #resolver: dns.Resolver
  readonly #client: DnsClient

  readonly #hostsFile: string

  /** `dnsServers` are `address` or `address:port`; the system's servers when absent or empty. `hostsFile` is that of hosts(5). */
  constructor({
    dnsServers,
    hostsFile = '/etc/hosts',
  }: { readonly dnsServers?: readonly string[] | undefined; readonly hostsFile?: string | undefined } = {}) {
    this.#hostsFile = hostsFile
    this.#resolver = new dns.Resolver()
    if (dnsServers !== undefined && dnsServers.length > 0) this.#resolver.setServers([...dnsServers])
    this.#client = new DnsClient(this.#resolver.getServers())
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
    return lookup(async () =>
      (await this.#resolver.resolveMx(domain)).map(({ priority, exchange }) => ({ preference: priority, exchange })),
    )
  }

  async lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    // localhost is not looked up in DNS (RFC 6761 §6.3).
    if (host === 'localhost' || host.endsWith('.localhost')) return { kind: 'found', records: [family === 4 ? '127.0.0.1' : '::1'] }
    return lookup(() => (family === 4 ? this.#resolver.resolve4(host) : this.#resolver.resolve6(host)))
  }

  lookupHost(host: string): Promise<Lookup<string>> {
    return lookup(async () => (await dns.lookup(host, { all: true, order: 'verbatim' })).map(({ address }) => address))
  }

  async lookupNames(address: string): Promise<Lookup<string>> {
    // The resolver reads the hosts file too, but returns the aliases of its lines only.
    const local = namesInHosts(await this.#hosts(), address)
    return local.length > 0 ? { kind: 'found', records: local } : lookup(() => this.#resolver.reverse(address))
  }

  /** Content of the hosts file; empty when it cannot be read, which leaves the names of DNS. */
  #hosts(): Promise<string> {
    return readFile(this.#hostsFile, 'utf8').catch(() => '')
  }

  async lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>> {
    return secureLookup(await this.#client.ask(name, type), name, type)
  }

  lookupTxt(name: string): Promise<Lookup<string>> {
    return lookup(async () => (await this.#resolver.resolveTxt(name)).map((strings) => strings.join('')))
  }

  ownAddresses(): readonly string[] {
    return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address))
  }

  listen({ address, port, ipv6Only = false }: ListenOptions, accept: (socket: Socket) => void): Promise<Listener> {
    return new Promise((resolve, reject) => {
      const server = createServer({ noDelay: true }, accept)
      server.once('error', reject)
      server.listen({ host: address, port, ipv6Only }, () => {
        server.off('error', reject)
        // An error of an open listener concerns a single connection (EMFILE), and accepting continues.
        server.on('error', () => {})
        const at = server.address() as AddressInfo
        resolve({
          address: at.address,
          port: at.port,
          close: async () => {
            // The callback of close runs after the last connection has ended, so it is not awaited.
            server.close()
          },
        })
      })
    })
  }
}

async function lookup<T>(query: () => Promise<readonly T[]>): Promise<Lookup<T>> {
  try {
    const records = await query()
    return records.length > 0 ? { kind: 'found', records } : { kind: 'none', nxdomain: false }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
    if (code === 'ENOTFOUND' || code === 'ENODATA') return { kind: 'none', nxdomain: code === 'ENOTFOUND' }
    return { kind: 'failed', soft: !PERMANENT.has(code), reason: code }
  }
}

export const systemNet: Net = new SystemNet()

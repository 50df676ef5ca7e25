/** Names of addresses in a file in the form of hosts(5). Pure. */
import { isIP, SocketAddress } from 'node:net'

/** The address in its canonical form (RFC 5952). */
const canonical = (address: string): string => (isIP(address) === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address)

/** Official names of the address, one for each line of the file that has it; the aliases after them are left out, as by getnameinfo(3). */
export function namesInHosts(text: string, address: string): readonly string[] {
  const wanted = canonical(address)
  return text.split('\n').flatMap((line) => {
    const [first = '', name] = line.replace(/#.*/, '').trim().split(/\s+/)
    return name !== undefined && isIP(first) !== 0 && canonical(first) === wanted ? [name] : []
  })
}

/** A DNS server in which all domains below `customer.example` have their mailboxes at one provider. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import packet from 'dns-packet'

/** Address of the provider's mail exchanger: of loopback, and of no interface, since a relay does not send mail to its own addresses. */
export const PROVIDER_ADDRESS = '127.0.0.2'

export interface ProviderZone {
  /** Value of dns_servers. */
  readonly address: string
  readonly close: () => Promise<void>
}

export async function startProviderZone(): Promise<ProviderZone> {
  const socket = createSocket('udp4')
  socket.on('message', (bytes, from) => {
    const { id, questions = [] } = packet.decode(bytes)
    const [question] = questions
    const { name = '', type } = question ?? {}
    const answers: packet.Answer[] = []
    if (type === 'MX' && name.endsWith('.customer.example')) {
      answers.push({ name, type, ttl: 60, data: { preference: 10, exchange: 'mx.big.example' } })
    }
    if (type === 'A' && name === 'mx.big.example') answers.push({ name, type, ttl: 60, data: PROVIDER_ADDRESS })
    socket.send(
      packet.encode({ type: 'response', id: id ?? 0, flags: packet.RECURSION_AVAILABLE, questions, answers }),
      from.port,
      from.address,
    )
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const close = (): Promise<void> => new Promise((resolve) => void socket.close(() => resolve()))
  return { address: `127.0.0.1:${socket.address().port}`, close }
}

/** The cipher of a TLS socket. Its type in Node omits null, which a socket has once it is closed, even within its handshake's callback. */
import type { CipherNameAndProtocol, TLSSocket } from 'node:tls'

export const cipherOf = (socket: TLSSocket): string | undefined => (socket.getCipher() as CipherNameAndProtocol | null)?.name

/**
 * The Signing port: signatures with private keys. The daemon signs in the thread pool, so that RSA does not block the event loop;
 * worlds sign within the call, so that the order of their events does not depend on real time. Equal input gives equal signatures.
 */
import { sign, type KeyObject } from 'node:crypto'

/** Signs with rsa-sha256 (PKCS #1 v1.5) or Ed25519, by the type of the key. Rejects with the error of OpenSSL. */
export type Signing = (data: Uint8Array, key: KeyObject) => Promise<Buffer>

const digestOf = (key: KeyObject): 'sha256' | null => (key.asymmetricKeyType === 'ed25519' ? null : 'sha256')

export const signInThreadPool: Signing = (data, key) =>
  new Promise((resolve, reject) => {
    sign(digestOf(key), data, key, (error, signature) => (error === null ? resolve(signature) : reject(error)))
  })

export const signAtOnce: Signing = async (data, key) => sign(digestOf(key), data, key)

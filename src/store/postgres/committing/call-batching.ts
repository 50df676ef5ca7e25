/** Keys by which calls of a batch exclude each other. */
import { METHODS, type Call, type Method, type DirectMethod } from '../../methods.ts'

export type WriteMethod = Exclude<Method, DirectMethod>

export type WriteCall = Call<WriteMethod>

const NO_KEYS: readonly string[] = []

export const isAlone = ({ method }: WriteCall): boolean => METHODS[method].sending === 'alone'

/** Names of a call, which no other call of its batch may have. */
export function keysOf<M extends WriteMethod>({ method, args }: Call<M>): readonly string[] {
  const { sending } = METHODS[method]
  return typeof sending === 'function' ? sending(args) : NO_KEYS
}

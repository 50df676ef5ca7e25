/** A new secret that signs the events of a subscription. */
import { randomOctets, type Random } from '../system/random.ts'

const BYTES = 32

/** `whsec_` and the base64 of 32 random bytes (Standard Webhooks). */
export const newSigningSecret = (random: Random): string => `whsec_${randomOctets(random, 'webhook secret', BYTES).toString('base64')}`

/** TLS levels of next hops, from the weakest (Postfix TLS_README). */
export const TLS_LEVELS = ['none', 'may', 'encrypt', 'dane', 'dane-only', 'verify', 'secure'] as const
export type TlsLevel = (typeof TLS_LEVELS)[number]

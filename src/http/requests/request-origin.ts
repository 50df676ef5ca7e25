/** The check of the origin of requests that may change something, against requests that other sites cause a browser to send. */

interface OriginFacts {
  readonly method: string
  /** Field Sec-Fetch-Site (W3C Fetch Metadata). Browsers send it over TLS and to loopback. */
  readonly site: string | undefined
  /** Field Origin (RFC 6454 §7). */
  readonly origin: string | undefined
  /** Origin of the page itself: scheme and host. */
  readonly ownOrigin: string
  /** True for a request with a token, which a browser never adds on its own. */
  readonly hasToken: boolean
  /** True for a request with the cookie of a session. */
  readonly hasCookie: boolean
}

/** Methods that change nothing (RFC 9110 §9.2.1). */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * The reason to refuse a request as one of another site; null to admit it. Without Sec-Fetch-Site and Origin it does not come from
 * a current browser, and is admitted if it uses no cookie.
 */
export function crossSiteReason({ method, site, origin, ownOrigin, hasToken, hasCookie }: OriginFacts): string | null {
  if (SAFE.has(method)) return null
  if (site !== undefined) return site === 'same-origin' ? null : `Sec-Fetch-Site is ${site}, not same-origin`
  if (origin !== undefined) return origin.toLowerCase() === ownOrigin.toLowerCase() ? null : `the origin is ${origin}, not ${ownOrigin}`
  return hasToken || !hasCookie ? null : 'it has neither Sec-Fetch-Site nor Origin: send a token instead of a cookie'
}

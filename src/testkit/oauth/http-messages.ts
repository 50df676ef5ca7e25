/** Requests and answers of HTTP, as the simulated authorization server has them. */

export interface HttpRequest {
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly type: string
  readonly body: string
}

export interface HttpAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>> | undefined
}

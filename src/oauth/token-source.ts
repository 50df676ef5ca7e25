/** Access tokens as the sessions with next hops use them. */

export interface TokenSource {
  /** The access token of a user. Rejects with an Error whose message says why there is none, and what to do. */
  get(user: string): Promise<string>
  /**
   * A token to use instead of one that a server refused; null when the refused one was fetched anew already (within 5 min): the server's
   * verdict stands. Rejects like `get` when there is none for now.
   */
  replacement(user: string, refused: string): Promise<string | null>
}

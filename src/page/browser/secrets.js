/** Removes a secret that is shown once when the browser leaves the screen, which it may keep for its button “Back”. */

export function startSecrets() {
  addEventListener('pagehide', () => {
    for (const one of document.querySelectorAll('[data-secret]')) one.textContent = one.getAttribute('data-secret')
  })
}

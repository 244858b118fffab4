// The address says which page is shown: #now, #refusals, … A token in it is taken out at once.

export class Router {
  constructor(names, on_page) {
    this.names = names;
    this.on_page = on_page;
    this.token = "";
    addEventListener("hashchange", () => this.follow());
  }

  follow() {
    const hash = location.hash.slice(1);
    const parameters = new URLSearchParams(hash);
    const token = parameters.get("token");
    if (token) {
      this.token = token;  // in memory only: gone with the page, and never in the history
      parameters.delete("token");
      history.replaceState(null, "", `#${this.names[0]}`);
    }
    const name = location.hash.slice(1);
    this.on_page(this.names.includes(name) ? name : this.names[0]);
  }
}

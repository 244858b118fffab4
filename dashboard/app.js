// Starts the dashboard: one stream, one page at a time, the verdict above all of them.
import { ActionDialog } from "./action_dialog.js";
import { Actions } from "./actions.js";
import { Banners } from "./banners.js";
import { Chooser } from "./chooser.js";
import { attr, clear, el, show, text } from "./dom.js";
import { duration } from "./format.js";
import { Model } from "./model.js";
import { ConfigPage } from "./page_config.js";
import { LimitPage } from "./page_limit.js";
import { MemoryPage } from "./page_memory.js";
import { NowPage } from "./page_now.js";
import { RefusalsPage } from "./page_refusals.js";
import { ReplicasPage } from "./page_replicas.js";
import { WhatIfPage } from "./page_what_if.js";
import { Router } from "./router.js";
import { Stream } from "./stream.js";
import { state_word } from "./verdict_words.js";
import { VerdictPanel } from "./verdict_panel.js";

const PAGES = {
  now: ["Now", NowPage], refusals: ["Refusals", RefusalsPage], limit: ["Limit", LimitPage], replicas: ["Replicas", ReplicasPage],
  memory: ["Memory", MemoryPage], what_if: ["What if", WhatIfPage], config: ["Config", ConfigPage],
};
const VIEWS = { what_if: "config" };  // the others are named like their page

const at = (id) => document.getElementById(id);

class App {
  constructor() {
    this.name = "now";
    this.pages = {};
    this.fed = new WeakSet();  // the pages that have something to show
    this.waiting = el("p", { class: "waiting" }, "The gateway has not yet told what belongs here.");
    this.model = new Model();
    this.chooser = new Chooser();
    this.actions = new Actions({ upstream: () => this.model.hello?.upstream ?? "", ask: (request) => this.dialog.open(request) });
    this.dialog = new ActionDialog(this.actions);
    this.banners = new Banners(at("banners"), {
      may_act: () => this.actions.offered(), remove: (override) => this.actions.remove(override), try_now: () => this.stream.connect(),
    });
    this.verdict = new VerdictPanel(at("verdict"));
    this.tabs = Object.entries(PAGES).map(([name, [label]]) => ({ name, node: el("a", { href: `#${name}` }, label) }));
    at("tabs").append(...this.tabs.map((tab) => tab.node));
    at("upstream").addEventListener("change", () => this.choose(at("upstream").value));
    at("skip").addEventListener("click", (event) => {
      event.preventDefault();  // the part after # is the page
      at("main").focus();
    });
    this.stream = new Stream({
      hello: (hello) => this.on_hello(hello), tick: (tick) => this.on_tick(tick), link: (state, seconds) => this.on_link(state, seconds),
      refused: () => this.choose(""),
    });
    this.router = new Router(Object.keys(PAGES), (name) => this.show_page(name));
    this.router.follow();
  }

  show_page(name) {
    this.name = name;
    if (this.router?.token) this.actions.token = this.router.token;
    for (const tab of this.tabs) attr(tab.node, "aria-current", tab.name === name ? "page" : null);
    this.mount();
    this.open();
  }

  get page() {
    return this.pages[this.name];
  }

  /** Puts the page into place; pages are made once, when they are first shown. */
  mount() {
    const hello = this.model.hello;
    if (hello === null) return;
    this.pages[this.name] ??= new PAGES[this.name][1]({
      hello, actions: this.actions, choose: (upstream) => this.choose(upstream), reopen: () => this.open(),
    });
    const main = at("main");
    show(this.page.node, this.fed.has(this.page));
    show(this.waiting, !this.fed.has(this.page));
    if (main.lastChild === this.page.node) return;
    clear(main);
    main.append(this.waiting, this.page.node);
    attr(main, "aria-label", PAGES[this.name][0]);
    scrollTo(0, 0);
  }

  open() {
    this.stream.open({
      view: VIEWS[this.name] ?? this.name, ...(this.chooser.chosen && { upstream: this.chooser.chosen }), ...(this.page?.parameters?.() ?? {}),
    });
  }

  choose(upstream) {
    this.chooser.chosen = upstream;
    this.fill_choice();
    this.open();
  }

  on_hello(hello) {
    const same = this.model.hello !== null && hello.upstreams.join("\n") === this.model.hello.upstreams.join("\n");
    this.model.on_hello(hello);
    this.chooser.shown = hello.upstream;
    this.actions.mode = hello.actions;
    if (!same) this.pages = {};
    this.mount();
    this.page.hello?.(hello);
    text(at("gateway"), hello.name);
    this.fill_choice();
  }

  fill_choice() {
    if (this.model.hello === null) return;
    const { upstreams, upstream } = this.model.hello;
    show(at("upstream-pick"), upstreams.length > 1);
    const wanted = ["", ...upstreams];
    const select = at("upstream");
    if (select.options.length !== wanted.length || wanted.some((name, i) => select.options[i].value !== name)) {
      select.replaceChildren(...wanted.map((name) => el("option", { value: name }, name)));
    }
    text(select.options[0], `Worst (${upstream})`);
    select.value = this.chooser.chosen;
  }

  on_tick(tick) {
    if (this.model.hello === null) return;
    this.model.on_tick(tick);
    this.actions.overrides = tick.overrides ?? [];
    this.verdict.update(tick, this.name);
    this.banners.tick(tick);
    if (!this.fed.has(this.page)) {
      this.fed.add(this.page);
      this.mount();
    }
    this.page.tick(tick, this.model);
    this.mark_tab(tick);
    if (this.upstreams_changed(tick)) this.choose("");
    else if (this.chooser.on_tick(tick)) this.open();
  }

  /** A reload has added or removed upstreams: the pages are made anew. */
  upstreams_changed(tick) {
    const names = this.model.hello.upstreams;
    return tick.upstreams.length !== names.length || tick.upstreams.some((upstream, i) => upstream.name !== names[i]);
  }

  /** The title and icon of the browser's tab tell the state, too. */
  mark_tab(tick) {
    const title = `${state_word(tick.state)} – ${this.model.hello.name} – Weir`;
    if (document.title !== title) document.title = title;
    const kind = { HEALTHY: "icon_healthy", PRESSURED: "icon_pressured", OVERLOADED: "icon_overloaded" }[tick.state] ?? "icon";
    attr(at("icon"), "href", `/dashboard/${kind}.svg`);
  }

  on_link(state, seconds) {
    const old = state === "late" || state === "gone" || state === "full";
    attr(document.body, "data-old", old ? "" : null);
    attr(at("link"), "data-link", state);
    text(at("link"), state === "live" ? "Live" : state === "connecting" ? "Connecting" : `No data for ${duration(seconds)}`);
    this.banners.link(state, seconds);
  }
}

new App();

"use strict";
// Search over KWIRE_INDEX, and opening the version that a link points to. No requests: the site is opened from files.
(function () {
  var MOST = 12, MOST_PLACES = 6;
  var root, input, results;

  function norm(text) {
    return text.toLowerCase().replace(/[_.\-\s]/g, "");
  }

  function el(name, text, className) {
    var node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  function link(text, href) {
    var node = el("a", text);
    node.href = root + href;
    return node;
  }

  // The anchor of a plain name, as kwire.pages.site.protocol.slug has it; other names have no link.
  function plain(name) {
    return /^[A-Za-z0-9]{1,80}$/.test(name) ? name : null;
  }

  function fieldAnchor(path) {
    var slug = path.replace(/\./g, "_2e");
    return /^[A-Za-z0-9_]{1,80}$/.test(slug) ? "#f-" + slug : "#fields";
  }

  // 0: exact; 1: prefix; 2: prefix of a word in the name; 3: anywhere; -1: no match
  function rank(name, token) {
    var whole = norm(name), at = whole.indexOf(token);
    if (at < 0) return -1;
    if (whole === token) return 0;
    if (at === 0) return 1;
    var words = name.split(/(?=[A-Z])/), start = 0;
    for (var i = 0; i < words.length; i++) {
      if (whole.startsWith(token, start)) return 2;
      start += norm(words[i]).length;
    }
    return 3;
  }

  function messagesFor(tokens) {
    var found = [];
    KWIRE_INDEX.messages.forEach(function (m) {
      var worst = 0;
      for (var i = 0; i < tokens.length; i++) {
        var r = m[2] !== null && String(m[2]) === tokens[i] ? 0 : rank(m[0], tokens[i]);
        if (r < 0) return;
        worst = Math.max(worst, r);
      }
      found.push({ score: worst, name: m[0], message: m });
    });
    return sorted(found);
  }

  // The name must contain one of the words; the message or the path may contain the others.
  function namesFor(names, tokens) {
    var found = [];
    names.forEach(function (entry) {
      var best = -1, left = [];
      tokens.forEach(function (token) {
        var r = rank(entry[0], token);
        if (r < 0) left.push(token);
        else best = best < 0 ? r : Math.min(best, r);
      });
      if (best < 0) return;
      var places = entry[1].filter(function (place) {
        var where = norm(KWIRE_INDEX.messages[place[0]][0] + place[1]);
        return left.every(function (token) { return where.indexOf(token) >= 0; });
      });
      // A name with all words ranks before one that needs the message or path.
      if (places.length) found.push({ score: best + 4 * left.length, name: entry[0], places: places });
    });
    return sorted(found);
  }

  function sorted(found) {
    return found.sort(function (a, b) {
      return a.score - b.score || a.name.length - b.name.length || (a.name < b.name ? -1 : 1);
    });
  }

  function group(title, found, draw) {
    if (!found.length) return;
    var more = found.length > MOST ? " · first " + MOST : "";
    results.appendChild(el("h2", title)).appendChild(el("small", found.length + more));
    var list = results.appendChild(el("ul"));
    found.slice(0, MOST).forEach(function (hit) { draw(list.appendChild(el("li")), hit); });
  }

  function drawMessage(item, hit) {
    var m = hit.message;
    item.appendChild(link(m[0], "message/" + m[3] + ".html"));
    item.appendChild(el("span", " " + m[1] + (m[2] === null ? "" : " " + m[2]) + ", versions " + m[4], "quiet"));
  }

  function drawName(kind) {
    return function (item, hit) {
      var anchor = plain(hit.name), code = el("code", hit.name);
      if (anchor) item.appendChild(link("", "names.html#" + kind + "-" + anchor)).appendChild(code);
      else item.appendChild(code);
      var places = item.appendChild(el("ul", undefined, "places"));
      hit.places.slice(0, MOST_PLACES).forEach(function (place) {
        var m = KWIRE_INDEX.messages[place[0]], line = places.appendChild(el("li"));
        line.appendChild(link(m[0], "message/" + m[3] + ".html" + fieldAnchor(place[1])));
        line.appendChild(el("span", " " + place[1], "path"));
        line.appendChild(el("span", " " + place[2] + ", " + place[3], "quiet"));
      });
      var rest = hit.places.length - MOST_PLACES;
      if (rest > 0) {
        var more = places.appendChild(el("li"));
        if (anchor) more.appendChild(link("and " + rest + " more", "names.html#" + kind + "-" + anchor));
        else more.textContent = "and " + rest + " more";
      }
    };
  }

  function search() {
    var tokens = input.value.split(/\s+/).map(norm).filter(Boolean);
    results.textContent = "";
    results.hidden = !tokens.length;
    document.body.classList.toggle("searching", tokens.length > 0);
    if (!tokens.length) return;
    var messages = messagesFor(tokens);
    var structs = namesFor(KWIRE_INDEX.structs, tokens), fields = namesFor(KWIRE_INDEX.fields, tokens);
    group("Messages", messages, drawMessage);
    group("Fields", fields, drawName("field"));
    group("Structs", structs, drawName("struct"));
    if (!results.childNodes.length) results.appendChild(el("p", "No results.", "quiet"));
  }

  function typed() {
    search();
    // Only the fragment: a page opened from a file may not change more of its address.
    location.replace("#" + (input.value ? "q=" + encodeURIComponent(input.value) : ""));
  }

  function fromAddress() {
    var hash = location.hash;
    if (hash.startsWith("#q=")) {
      var wanted = hash.slice(3);
      try { wanted = decodeURIComponent(wanted); } catch (error) { /* a stray %: not decoded */ }
      if (input.value !== wanted) {
        input.value = wanted;
        search();
      }
      return;
    }
    if (hash.length > 1) {
      input.value = "";
      search();
    }
    var target = document.getElementById(hash.slice(1)) || runOf(hash);
    if (!target) return;
    for (var node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    target.scrollIntoView();
  }

  // #v5 if versions 4 and 5 share a layout
  function runOf(hash) {
    var version = /^#v(\d+)$/.exec(hash), best = null;
    if (!version) return null;
    document.querySelectorAll("details.run > div").forEach(function (node) {
      var lowest = Number(node.id.slice(1));
      if (lowest <= version[1] && (!best || lowest > Number(best.id.slice(1)))) best = node;
    });
    return best;
  }

  document.addEventListener("DOMContentLoaded", function () {
    root = document.body.dataset.root || "";
    input = document.getElementById("q");
    results = document.getElementById("results");
    var form = document.getElementById("search");
    form.hidden = false;
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      var first = results.querySelector("a");
      if (first) first.click();
    });
    input.addEventListener("input", typed);
    document.addEventListener("keydown", function (event) {
      if (event.key === "/" && document.activeElement !== input) {
        event.preventDefault();
        input.focus();
      } else if (event.key === "Escape" && input.value) {
        input.value = "";
        typed();
      }
    });
    window.addEventListener("hashchange", fromAddress);
    fromAddress();
  });
})();

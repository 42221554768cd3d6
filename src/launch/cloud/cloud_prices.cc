#include "launch/cloud/cloud_prices.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/json.h"

namespace pscloud {
namespace {

constexpr const char* kPriceListRegion = "us-east-1";  // of the service that knows the prices of all regions

// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html; they count virtual processors.
struct Family {
  const char* name;
  const char* begins;  // of types, up to the number: "c5.xlarge" is of "c"
  const char* on_demand;
  const char* spot;
};
constexpr std::array kFamilies = {
    Family{"standard", " a c d h i m r t z im is ", "L-1216C47A", "L-34B43A08"},
    Family{"G and VT", " g gr vt ", "L-DB2E81BA", "L-3819A6DF"},
    Family{"P", " p ", "L-417A185B", "L-7212CCBC"},
    Family{"F", " f ", "L-74FC7D96", "L-88CF9481"},
    Family{"X", " x ", "L-7295265B", "L-E3A00192"},
};

const Family* family_of(const std::string& type) {
  const std::string letters = " " + type.substr(0, type.find_first_of("0123456789.-")) + " ";
  const auto found = std::ranges::find_if(
      kFamilies, [&](const Family& each) { return std::string_view(each.begins).find(letters) != std::string::npos; });
  return found == kFamilies.end() || letters == "  " ? nullptr : &*found;
}

Result<double> dollars_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return corrupt("'{}' is no price", text);
  return number;
}

std::string price_question(const std::string& type, const std::string& region) {
  const std::pair<const char*, std::string> wanted[] = {{"instanceType", type},       {"regionCode", region},
                                                        {"operatingSystem", "Linux"}, {"preInstalledSw", "NA"},
                                                        {"tenancy", "Shared"},        {"capacitystatus", "Used"}};
  JsonWriter json;
  json.begin_object().field("ServiceCode", "AmazonEC2").field("MaxResults", 10).key("Filters").begin_array();
  for (const auto& [field, value] : wanted) {
    json.begin_object().field("Type", "TERM_MATCH").field("Field", field).field("Value", value).end_object();
  }
  return json.end_array().end_object().text();
}

Result<double> spot_price(AwsApi& api, const std::string& type, const std::string& zone) {
  const auto now = unix_seconds_now();
  Ec2Form form;
  form.set("InstanceType.1", type).set("ProductDescription.1", "Linux/UNIX").set("AvailabilityZone", zone);
  form.set("StartTime", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))).set("MaxResults", "10");
  const XmlElement body = TRY(api.call("DescribeSpotPriceHistory", form));
  std::string newest;
  std::string price;
  if (const XmlElement* set = body.child("spotPriceHistorySet"); set != nullptr) {
    for (const XmlElement& item : set->children) {
      if (item.text_of("instanceType") != type || item.text_of("timestamp") < newest) continue;
      newest = item.text_of("timestamp");
      price = item.text_of("spotPrice");
    }
  }
  if (price.empty()) return not_found("there is no history of it in {}", zone);
  return dollars_of(price);
}

// What runs already, by family and market.
double used_vcpus(const std::vector<XmlElement>& reservations, const Family& family, bool spot) {
  double used = 0;
  for (const XmlElement& reservation : reservations) {
    const XmlElement* set = reservation.child("instancesSet");
    if (set == nullptr) continue;
    for (const XmlElement& instance : set->children) {
      if (family_of(instance.text_of("instanceType")) != &family) continue;
      if ((instance.text_of("instanceLifecycle") == "spot") != spot) continue;
      const XmlElement* cpus = instance.child("cpuOptions");
      if (cpus == nullptr) continue;
      const auto cores = dollars_of(cpus->text_of("coreCount"));
      const auto threads = dollars_of(cpus->text_of("threadsPerCore"));
      if (cores && threads) used += *cores * *threads;
    }
  }
  return used;
}

}  // namespace

Result<double> on_demand_price(const JsonValue& answer) {
  for (const JsonValue& text : answer["PriceList"].items()) {
    const auto product = JsonValue::parse(text.text());
    if (!product) continue;
    for (const auto& [offer_name, offer] : (*product)["terms"]["OnDemand"].members()) {
      for (const auto& [rate_name, rate] : offer["priceDimensions"].members()) {
        const auto price = dollars_of(rate["pricePerUnit"]["USD"].text());
        if (price && *price > 0) return *price;
      }
    }
  }
  return not_found("AWS's price list does not have it");
}

CloudPrice ask_price(AwsApi& api, const std::string& type, bool spot, const std::string& zone) {
  const auto find = [&]() -> Result<double> {
    if (spot) return spot_price(api, type, zone);
    const JsonValue answer = TRY(api.ask_json("pricing", kPriceListRegion, "AWSPriceListService.GetProducts",
                                              price_question(type, api.region())));
    return on_demand_price(answer);
  };
  const auto found = find();
  if (found) return {.dollars = *found, .unknown = ""};
  return {.dollars = std::nullopt, .unknown = found.error().message};
}

std::string quota_family(const std::string& type) {
  const Family* family = family_of(type);
  return family == nullptr ? "" : family->name;
}

std::vector<CloudQuota> ask_quotas(AwsApi& api, const std::vector<CloudPlan::Group>& groups) {
  std::map<std::pair<const Family*, bool>, int> wanted;
  std::vector<CloudQuota> quotas;
  for (const CloudPlan::Group& group : groups) {
    if (const Family* family = family_of(group.type); family != nullptr) {
      wanted[{family, group.spot}] += group.count * group.what.vcpus;
    } else {
      quotas.push_back({.what = fmt::format("{} {}", group.spot ? "spot" : "on-demand", group.type),
                        .wanted = group.count * group.what.vcpus,
                        .limit = std::nullopt,
                        .unknown = "it is not known here which limit this type counts for"});
    }
  }
  const auto running =
      api.list("DescribeInstances", "reservationSet", Ec2Form().filter("instance-state-name", {"pending", "running"}));
  for (const auto& [key, vcpus] : wanted) {
    const auto& [family, spot] = key;
    CloudQuota quota{.what = fmt::format("{} {}", spot ? "spot" : "on-demand", family->name),
                     .wanted = vcpus,
                     .limit = std::nullopt,
                     .unknown = ""};
    if (!running) {
      quota.unknown = fmt::format("it is not known what runs already: {}", running.error().message);
      quotas.push_back(std::move(quota));
      continue;
    }
    quota.used = used_vcpus(*running, *family, spot);
    JsonWriter json;
    json.begin_object().field("ServiceCode", "ec2").field("QuotaCode", spot ? family->spot : family->on_demand);
    const auto answer =
        api.ask_json("servicequotas", api.region(), "ServiceQuotasV20190624.GetServiceQuota", json.end_object().text());
    const JsonValue nothing;
    const JsonValue& value = answer ? (*answer)["Quota"]["Value"] : nothing;
    if (value.is(JsonValue::Kind::kNumber)) {
      quota.limit = value.number();
    } else {
      quota.unknown = answer ? "AWS does not tell it" : answer.error().message;
    }
    quotas.push_back(std::move(quota));
  }
  return quotas;
}

}  // namespace pscloud
